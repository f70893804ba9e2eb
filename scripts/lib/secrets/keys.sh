# The keys of one instance: makes each once, and never a new one in the place of a lost one that stored data need.
# Needs ui.sh, instance.sh, $here, and of host/services/settings `chosen NAME DEFAULT`, $orchestrator, $agent and $secrets_key.
# shellcheck shell=bash

secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }

# kept FILE NAME: prints the value of NAME in FILE, else a new secret.
kept() {
  local value
  value=$(setting "$1" "$2")
  printf '%s' "${value:-$(secret)}"
}

# key NAME: prints a key of the orchestrator: the operator's own, the one that the machine has, or a new one.
key() { chosen "$1" "$(kept "$orchestrator" "$1")"; }

# missing_keys: prints "KEY<tab>FILE" for each key that is neither the operator's own nor on the machine.
missing_keys() {
  local name
  if runs_here orchestrator; then orchestrator_keys_missing; fi
  runs_here agent || return 0
  [ -n "$(chosen SVC_NODE_ID "$(setting "$agent" SVC_NODE_ID)")" ] || printf 'SVC_NODE_ID\t%s\n' "$agent"
  name=$(chosen SVC_SEAL_KEY_FILE "$CONFIG_DIR/seal.key")
  [ -s "$name" ] || printf 'seal.key\t%s\n' "$name"
}

orchestrator_keys_missing() {
  local name
  for name in SVC_NODE_KEY SVC_SEED SVC_ENCRYPTION_KEY; do
    [ -n "$(chosen "$name" "$(chosen "${name}_FILE" "$(setting "$orchestrator" "$name")")")" ] || printf '%s\t%s\n' "$name" "$orchestrator"
  done
  name=$(chosen SVC_SECRETS_KEY_FILE "$secrets_key")
  [ -n "$(chosen SVC_SECRETS_KEY_COMMAND '')" ] || [ -s "$name" ] || printf 'secrets.key\t%s\n' "$name"
}

# new_keys_are_harmless: fails when stored data need a key that is missing, and says what each opens.
new_keys_are_harmless() {
  local missing database agent_database url_file url data lost key file
  missing=$(missing_keys)
  [ -n "$missing" ] || return 0
  database=$(chosen SVC_DATABASE "$STATE_DIR/orchestrator/svc.db")
  agent_database=$(chosen SVC_STATE_DIR "$STATE_DIR/agent")/agent.db
  url_file=$(chosen DATABASE_URL_FILE '')
  url=$(chosen DATABASE_URL "$([ -z "$url_file" ] || cat "$url_file")")
  # On a new machine there is nothing to open.
  if [ ! -s "$database" ] && [ ! -s "$agent_database" ] && [ -z "$url" ]; then return 0; fi
  data=$("$NODE" "$here/host/services/stored-data.mjs" "$database" "$agent_database" <<<"$url") ||
    fail "keys are missing, and what they open could not be read: $(cut -f 1 <<<"$missing" | paste -sd ' ')" "the log has the reason"
  lost=$(while IFS=$'\t' read -r key file; do
    awk -F '\t' -v key="$key" -v file="$file" '$1 == key { printf "%s in %s opens %s\n", key, file, $2 }' <<<"$data"
  done <<<"$missing")
  [ -z "$lost" ] || fail "keys are missing, and new ones would open nothing that is stored: $(paste -sd ';' <<<"$lost" | sed 's/;/; /g')" \
    "put $(cut -f 2 <<<"$missing" | sort -u | paste -sd ' ') back from your backup (docs/operating/backup.md); './scripts/down --purge' removes the platform with all its data"
}
