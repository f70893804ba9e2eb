# Names, directories and numbers of one platform on this machine. SVC_INSTANCE (default: none) lets several
# platforms run side by side, for example that of the tests and that of a user. They share Docker's runtime,
# CRIU, the base image and the installed versions, and nothing that is named here.
# shellcheck shell=bash disable=SC2034

INSTANCE=${SVC_INSTANCE:-}
# Five letters: svcNAME is the prefix of network interfaces, whose names have room for fifteen.
if [[ -n $INSTANCE && ! $INSTANCE =~ ^[a-z][a-z0-9]{0,4}$ ]]; then
  printf 'error: SVC_INSTANCE must be one to five lower-case letters or digits, beginning with a letter\n' >&2
  exit 2
fi
SUFFIX=${INSTANCE:+-$INSTANCE}

CHECKOUT=$(CDPATH='' cd -- "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OWN_DIR=$CHECKOUT/.svc$SUFFIX
CONFIG_DIR=/etc/svc$SUFFIX
STATE_DIR=/var/lib/svc$SUFFIX
RUN_DIR=/run/svc$SUFFIX
LOG_DIR=/var/log/svc$SUFFIX
# Shared by all instances.
SHARED_STATE=/var/lib/svc
INSTALLED=/opt/svc
APP=$INSTALLED/app/current$SUFFIX
ENVD_RUNTIME=$INSTALLED/envd-runtime/current$SUFFIX

NETWORK_NAME=svc$INSTANCE
SERVICE_USER=svc
# What runs here: `node` (an agent that has joined a platform of another machine), `edge` (an edge program that has), `orchestrator`
# (with its edge, and agents on other machines only), or orchestrator and agent. `up` writes the word down.
ROLE=$(cat "$CONFIG_DIR/role" 2>/dev/null || true)
case $ROLE in
  node) PROGRAMS=(agent) ;;
  edge) PROGRAMS=(edge) ;;
  orchestrator) PROGRAMS=(orchestrator) ;;
  *) PROGRAMS=(orchestrator agent) ;;
esac

# The default instance has the documented ports and subnet. The numbers of other instances are shifted by an amount
# that depends on the name alone. A multiple of 100 keeps the ports of two instances apart.
if [ -z "$INSTANCE" ]; then
  NUMBER=0
else
  NUMBER=$(($(printf '%s' "$INSTANCE" | cksum | cut -d ' ' -f 1) % 200 + 1))
fi
API_PORT=$((3000 + NUMBER * 100))
EDGE_PORT=$((3002 + NUMBER * 100))
AGENT_PORT=$((5010 + NUMBER * 100))
PROXY_PORT=$((5011 + NUMBER * 100))
# Where nodes of other machines report to, once there may be some.
NODES_PORT=$((3003 + NUMBER * 100))
# Where an edge program answers operators' tools.
EDGE_STATUS_PORT=$((3004 + NUMBER * 100))
if [ "$NUMBER" -eq 0 ]; then SUBNET=10.213.0.0/16; else SUBNET=10.$((NUMBER % 30 + 214)).0.0/16; fi

# setting FILE NAME: the value of one line of a settings file that host/services/settings made; nothing when
# the file or the line is not there.
setting() {
  [ -f "$1" ] || return 0
  sed -n "s/^$2=//p" "$1" | tail -n 1 | sed -e 's/^"\(.*\)"$/\1/' -e 's/\\\([\\"$`]\)/\1/g'
}

# admin_token: the newest token of the file of operators' tokens; nothing when there is no file.
admin_token() {
  [ -f "$CONFIG_DIR/admin-token" ] || return 0
  sed -n -e 's/[[:space:]].*//' -e '1p' "$CONFIG_DIR/admin-token"
}

# runs_here PROGRAM: whether it is one of this machine's.
runs_here() { [[ " ${PROGRAMS[*]} " == *" $1 "* ]]; }

# The user who runs the script, also under sudo, owns the files that the scripts leave in the checkout.
INVOKER_UID=${SUDO_UID:-$(id -u)}
INVOKER_GID=${SUDO_GID:-$(id -g)}

# as_owner COMMAND…: npm and the build leave files in the checkout; they run as the owner of the checkout.
as_owner() {
  local owner
  owner=$(stat -c %u "$CHECKOUT")
  if [ "$owner" = "$(id -u)" ]; then
    "$@"
  else
    # Root's directory for temporary files is closed to that user.
    setpriv --reuid "$owner" --regid "$(stat -c %g "$CHECKOUT")" --init-groups -- \
      env -u TMPDIR HOME="$(getent passwd "$owner" | cut -d : -f 6)" "$@"
  fi
}
