# What a machine of a fleet runs, and the address at which it is reached. Needs ui.sh and instance.sh.
# shellcheck shell=bash

# keep_setting NAME VALUE: writes down what a join or the first node has decided, in the place of its earlier value. It is none of the
# operator's own settings, which `up --change-settings` replaces; one of these with the same name wins.
keep_setting() {
  local file=$CONFIG_DIR/fleet.env rest=''
  install -d -m 0750 "$CONFIG_DIR"
  if [ -f "$file" ]; then rest=$(grep -v "^$1=" "$file" || true); fi
  (umask 077 && printf '%s%s="%s"\n' "${rest:+$rest$'\n'}" "$1" "$2" >"$file.new")
  mv "$file.new" "$file"
}

# take_role ROLE: writes down what this machine runs. A machine keeps what it is: its data belong to it.
take_role() {
  if [ "$ROLE" = "$1" ]; then return 0; fi
  if [ -f "$CONFIG_DIR/orchestrator.env" ] || [ -f "$CONFIG_DIR/agent.env" ] || [ -f "$CONFIG_DIR/edge.env" ]; then
    fail "this machine runs ${ROLE:-a platform of its own} already, so it cannot become another one's $1" \
      "'./scripts/down --purge' removes that with all its data; SVC_INSTANCE=name ./scripts/up … sets a second one up beside it"
  fi
  install -d -m 0750 "$CONFIG_DIR"
  printf '%s\n' "$1" >"$CONFIG_DIR/role"
}

# hosts_in URLS: the hosts of https URLs with commas between them, one a line; nothing when one of them is any other text.
hosts_in() {
  local url host hosts=''
  for url in ${1//,/ }; do
    host=$(host_in "$url")
    [ -n "$host" ] || return 0
    hosts+=$host$'\n'
  done
  printf '%s' "$hosts"
}

# host_in URL: the host of an https URL, without brackets; nothing for any other text.
host_in() {
  local form='^https://(\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(:[0-9]+)?/?$'
  if [[ $1 =~ $form ]]; then printf '%s' "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"; fi
}

# address_towards HOST: the address of this machine from which packets to HOST leave; nothing when no way leads there.
address_towards() {
  local address
  address=$(getent ahosts "$1" | awk 'NR == 1 { print $1 }') || return 0
  [ -n "$address" ] || return 0
  ip -o route get "$address" 2>/dev/null | sed -nE 's/.* src ([^ ]+).*/\1/p'
}

# own_address: the address of this machine on its way to anywhere; nothing on a machine without such a way.
own_address() {
  local device
  device=$(ip -o -4 route show default 2>/dev/null | sed -nE '1s/.* dev ([^ ]+).*/\1/p')
  [ -n "$device" ] || return 0
  ip -o -4 address show dev "$device" scope global | awk 'NR == 1 { sub(/\/.*/, "", $4); print $4 }'
}
