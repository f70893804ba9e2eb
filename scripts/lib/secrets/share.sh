# What a second orchestrator needs of the first: the address of their database and the keys that open what is in it.
# Needs ui.sh, instance.sh and services.sh.
# shellcheck shell=bash

shared_names=(SVC_NODE_KEY SVC_NODE_KEY_PREVIOUS SVC_SEED SVC_SEED_PREVIOUS SVC_ENCRYPTION_KEY SVC_ENCRYPTION_KEY_PREVIOUS
  SVC_METRICS_TOKEN SVC_METRICS_TOKEN_PREVIOUS)

# share_keys FILE: writes them to FILE, which only root can read.
share_keys() {
  local database name value
  database=$(effective orchestrator DATABASE_URL)
  if [ -z "$database" ]; then database=$(cat "$(effective orchestrator DATABASE_URL_FILE)" 2>/dev/null || true); fi
  [ -n "$database" ] || fail "this orchestrator keeps its data in a SQLite file, which no other one can use" \
    "move to PostgreSQL first (docs/operating/database.md)"
  [ ! -e "$1" ] || fail "$1 exists" "name a file that is not there yet"
  (
    umask 077
    {
      printf '# Keys of the platform: whoever has them reads all that it stores. Remove this file when the other orchestrator runs.\n'
      printf 'DATABASE_URL="%s"\n' "$database"
      for name in "${shared_names[@]}"; do
        value=$(effective orchestrator "$name")
        [ -z "$value" ] || printf '%s="%s"\n' "$name" "$value"
      done
      printf 'ADMIN_TOKENS="%s"\n' "$(base64 -w 0 "$CONFIG_DIR/admin-token")"
      name=$(effective orchestrator SVC_SECRETS_KEY_FILE)
      if [ -z "$(effective orchestrator SVC_SECRETS_KEY_COMMAND)" ]; then printf 'SECRETS_KEY="%s"\n' "$(base64 -w 0 "$name")"; fi
    } >"$1"
  )
}

# take_keys FILE: makes them those of this machine, which has none yet.
take_keys() {
  local name value
  [ -r "$1" ] || fail "$1 is not there" "'./scripts/node add --orchestrator FILE' on the machine of the first orchestrator writes it; copy it here"
  for name in DATABASE_URL SVC_NODE_KEY SVC_SEED SVC_ENCRYPTION_KEY ADMIN_TOKENS; do
    [ -n "$(setting "$1" "$name")" ] || fail "$1 has no $name" "'./scripts/node add --orchestrator FILE' writes a whole one"
  done
  if [ -f "$CONFIG_DIR/orchestrator.env" ]; then
    for name in SVC_NODE_KEY SVC_SEED SVC_ENCRYPTION_KEY; do
      [ "$(effective orchestrator "$name")" = "$(setting "$1" "$name")" ] ||
        fail "this orchestrator has keys of its own, with which it could not open what the other one has stored" \
          "'./scripts/down --purge' removes it with all its data; then run this again"
    done
    note 'has the keys already'
    return 0
  fi
  install -d -m 0750 "$CONFIG_DIR"
  (
    umask 077
    setting "$1" ADMIN_TOKENS | base64 -d >"$CONFIG_DIR/admin-token"
    value=$(setting "$1" SECRETS_KEY)
    if [ -n "$value" ]; then base64 -d <<<"$value" >"$CONFIG_DIR/secrets.key"; fi
    grep '^DATABASE_URL=' "$1" >"$CONFIG_DIR/config.env"
    # Last: what is here without it is no orchestrator yet, and is written again.
    grep '^SVC_' "$1" >"$CONFIG_DIR/orchestrator.env.new"
    mv "$CONFIG_DIR/orchestrator.env.new" "$CONFIG_DIR/orchestrator.env"
  )
}
