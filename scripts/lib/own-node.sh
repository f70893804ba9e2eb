# The orchestrator's own machine as a node of a fleet: once there is a port for nodes, its agent joins as those of other machines do,
# under the name that it has; until then it reports over loopback. A run that was cut anywhere is repeated and goes on.
# Needs ui.sh, instance.sh, engine.sh, services.sh, role.sh and $here, the directory scripts/. Each failure is returned, because
# errexit is off below a condition.
# shellcheck shell=bash

: "${here:?}"

own_membership=$STATE_DIR/agent/membership/membership.json
# With this file the settings are those of a member. The agent reads it when it starts and is none yet.
own_token=$CONFIG_DIR/join-token

# own_node_is_due: whether other machines can join this platform, and this one takes sandboxes too.
own_node_is_due() {
  [ -z "$ROLE" ] || return 1
  case $(effective orchestrator SVC_NODES_PORT) in '' | 0) return 1 ;; esac
}

# own_node_joins [again]: makes the agent of this machine a member, unless it is one, and starts it as one; its sandboxes stay. With
# `again` it gets new tokens and a new certificate of its key. Where the first join fails, the agent goes on over loopback.
own_node_joins() {
  local token was_member=''
  own_node_addresses || return 0
  if [ -s "$own_membership" ]; then was_member=yes; fi
  if [ -s "$own_token" ]; then "$here/host/services/settings" machine || return 1; fi
  if [ "${1:-}" != again ] && is_member; then
    "$here/host/services/start" agent || return 1
    note 'is a node of the fleet'
    return 0
  fi
  token=$(new_own_token) || true
  [ -n "$token" ] ||
    fail "the orchestrator made no join token for this machine" "'scripts/service log orchestrator' tells more"
  (umask 077 && printf '%s\n' "$token" >"$own_token.new") || return 1
  mv "$own_token.new" "$own_token" || return 1
  # What the platform gave before. The key beside it is the node, and stays.
  rm -f "$own_membership"
  "$here/host/services/settings" machine || return 1
  # A running agent has what it had before.
  rm -f "$RUN_DIR/agent.fingerprint"
  if ! "$here/host/services/start" agent; then own_node_failed "$was_member"; fi
  note "has joined, at $(effective agent SVC_AGENT_HOST)"
}

# own_node_addresses: writes down where the agent reports to and where other machines reach it; fails where there is no such address.
own_node_addresses() {
  local address
  address=$(effective orchestrator SVC_NODES_HOST)
  case $address in
    '') address=127.0.0.1 ;;
    0.0.0.0 | ::) address=$(own_address) ;;
  esac
  if [ -z "$address" ]; then
    note 'stays alone: no address of this machine is reached by others; set SVC_NODES_HOST'
    return 1
  fi
  keep_setting SVC_ORCHESTRATOR_URL "https://$(url_host "$address"):$(effective orchestrator SVC_NODES_PORT)"
  keep_setting SVC_AGENT_HOST "$address"
}

# is_member: whether the orchestrator takes this machine's certificate and tokens: not after their end, after the node was removed, or
# with a database that does not know it.
is_member() {
  [ -s "$own_token" ] && [ -s "$own_membership" ] || return 1
  # shellcheck disable=SC2016
  env -i bash -c 'set -a; . "$1"; . "$2"; exec "$3" "$4" --check-membership' - \
    "$CONFIG_DIR/agent.env" "$CONFIG_DIR/agent.own.env" "$APP/node" "$APP/agent.js"
}

# new_own_token: prints a new join token. The operators' token goes to curl by standard input.
new_own_token() {
  local_curl -fsS -m 20 -X POST -H @- "http://127.0.0.1:$(effective orchestrator SVC_API_PORT)/admin/join-tokens" \
    <<<"X-Admin-Token: $(admin_token)" | sed -nE 's/.*"token":"([^"]*)".*/\1/p'
}

# own_node_failed WAS_MEMBER: the agent is not ready. One that has never been a member goes back to loopback.
own_node_failed() {
  local said
  [ ! -s "$own_membership" ] || exit 1
  said=$("$here/service" log agent | grep -oE 'this machine did not join the platform: [^"\\]*' | tail -n 1 || true)
  if [ -z "$1" ]; then
    rm -f "$own_token" "$RUN_DIR/agent.fingerprint"
    "$here/host/services/settings" machine && "$here/host/services/start" agent
  fi
  fail "${said:-the agent of this machine did not join the platform}" "'scripts/service log agent' tells more; './scripts/up' tries again"
}
