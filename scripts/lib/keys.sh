# The keys of one instance: makes each once, and never a new one in the place of a lost one that stored data need.
# Needs ui.sh, instance.sh, $here, and of the caller `chosen NAME DEFAULT`, $orchestrator and $text (host/services/settings).
# shellcheck shell=bash

secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }

# kept FILE NAME: prints the value of NAME in FILE, else a new secret.
kept() {
  local value
  value=$(setting "$1" "$2")
  printf '%s' "${value:-$(secret)}"
}

# key NAME: prints a key of the orchestrator: the operator's own, the one that the machine has, or a new one.
key() {
  local value
  value=$(chosen "$1" "$(setting "$orchestrator" "$1")")
  if [ -z "$value" ]; then
    # In a file of the operator's own: the value here is not used.
    [ -n "$(chosen "$1_FILE" '')" ] || new_key_is_harmless "$1" "$orchestrator"
    value=$(secret)
  fi
  printf '%s' "$value"
}

# new_key_is_harmless KEY FILE: fails when stored data need the key that FILE should hold, and says what it opens.
new_key_is_harmless() {
  local database agent_database url_file url data opens
  database=$(chosen SVC_DATABASE "$STATE_DIR/orchestrator/svc.db")
  agent_database=$(chosen SVC_STATE_DIR "$STATE_DIR/agent")/agent.db
  url_file=$(chosen DATABASE_URL_FILE '')
  url=$(chosen DATABASE_URL "$([ -z "$url_file" ] || cat "$url_file")")
  # On a new machine there is nothing to open.
  if [ ! -s "$database" ] && [ ! -s "$agent_database" ] && [ -z "$url" ]; then return 0; fi
  data=$(DATABASE_URL=$url node "$here/host/services/stored-data.mjs" "$database" "$agent_database") ||
    fail "$1 is missing in $2, and what it opens could not be read" "the log has the reason"
  opens=$(awk -F '\t' -v key="$1" '$1 == key { print $2 }' <<<"$data")
  [ -z "$opens" ] || fail "$1 is missing in $2, and a new one would not open: $opens" \
    "put $2 back from your backup (docs/operating.md, Backup); './scripts/down --purge' removes the platform with all its data"
}
