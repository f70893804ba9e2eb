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
# The Node of the programs, which `npm ci` brings. The machine's own, `node`, only runs npm and what is needed before there is this one.
NODE=$CHECKOUT/node_modules/.bin/node
OWN_DIR=$CHECKOUT/.svc$SUFFIX
CONFIG_DIR=/etc/svc$SUFFIX
# is_package: whether these scripts are those of the Debian package. It brings what a checkout builds, and nothing below /usr changes.
is_package() { [ -e "$CHECKOUT/.package" ]; }
# The file of the operator's own settings, where it is not that of a checkout.
OWN_SETTINGS=
if is_package; then
  OWN_DIR=$CONFIG_DIR/own
  OWN_SETTINGS=/etc/default/svc$SUFFIX
fi
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

# number_of INSTANCE: by how much its ports and subnet are shifted. The default instance has the documented ones. `up` writes
# the number of another one down; before that, and for instances of earlier versions, it follows from the name.
number_of() {
  if [ -z "$1" ]; then
    printf 0
  elif ! cat "$(dirname "$CONFIG_DIR")/svc-$1/number" 2>/dev/null; then
    printf '%s' "$(($(printf '%s' "$1" | cksum | cut -d ' ' -f 1) % 200 + 1))"
  fi
}

# subnet_of NUMBER: the addresses of its sandboxes.
subnet_of() { if [ "$1" -eq 0 ]; then printf 10.213.0.0/16; else printf '10.%s.0.0/16' "$(($1 % 30 + 214))"; fi; }

# keep_number: writes down a number that gives this instance ports and addresses which no other one of the machine has. An
# instance that was set up already keeps what it has.
keep_number() {
  local number other tries taken=''
  [ -n "$INSTANCE" ] && [ ! -e "$CONFIG_DIR/number" ] || return 0
  number=$(number_of "$INSTANCE")
  if [ ! -f "$CONFIG_DIR/orchestrator.env" ] && [ ! -f "$CONFIG_DIR/agent.env" ]; then
    for other in "${CONFIG_DIR%"$SUFFIX"}"-*; do
      if [ -d "$other" ] && [ "$other" != "$CONFIG_DIR" ]; then
        taken+=" $(($(number_of "${other#"${CONFIG_DIR%"$SUFFIX"}-"}") % 30)) "
      fi
    done
    # Subnets repeat after thirty numbers; two with different subnets have different ports, too.
    for ((tries = 0; tries < 30; tries++)); do
      [[ $taken == *" $((number % 30)) "* ]] || break
      number=$((number % 200 + 1))
    done
  fi
  install -d -m 0750 "$CONFIG_DIR"
  printf '%s\n' "$number" >"$CONFIG_DIR/number"
}

# A multiple of 100 keeps the ports of two instances apart.
NUMBER=$(number_of "$INSTANCE")
API_PORT=$((3000 + NUMBER * 100))
EDGE_PORT=$((3002 + NUMBER * 100))
AGENT_PORT=$((5010 + NUMBER * 100))
PROXY_PORT=$((5011 + NUMBER * 100))
# Where nodes of other machines report to, once there may be some.
NODES_PORT=$((3003 + NUMBER * 100))
# Where an edge program answers operators' tools.
EDGE_STATUS_PORT=$((3004 + NUMBER * 100))
SUBNET=$(subnet_of "$NUMBER")

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
# Those of a package are the machine's.
if is_package; then INVOKER_UID=0 INVOKER_GID=0; fi

# as_owner COMMAND…: npm and the build leave files in the checkout; they run as the owner of the checkout. An unpacked archive may
# have an owner that this machine does not know: then as root.
as_owner() {
  local owner
  owner=$(stat -c %u "$CHECKOUT")
  if [ "$owner" = "$(id -u)" ] || ! getent passwd "$owner" >/dev/null; then
    "$@"
  else
    # Root's directory for temporary files is closed to that user.
    setpriv --reuid "$owner" --regid "$(stat -c %g "$CHECKOUT")" --init-groups -- \
      env -u TMPDIR HOME="$(getent passwd "$owner" | cut -d : -f 6)" "$@"
  fi
}
