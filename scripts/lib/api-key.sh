# The API key of the project that `up` makes for the machine's own users. Each checkout has it in .svc/env; the machine keeps it in a
# file for root, so that another checkout uses the same project. Needs instance.sh.
# shellcheck shell=bash

kept_api_key() { cat "$CONFIG_DIR/api-key" 2>/dev/null || true; }

keep_api_key() { # KEY
  [ "$1" != "$(kept_api_key)" ] || return 0
  (umask 077 && printf '%s\n' "$1" >"$CONFIG_DIR/api-key.new") && mv -T "$CONFIG_DIR/api-key.new" "$CONFIG_DIR/api-key"
}
