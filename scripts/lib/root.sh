# Functions that become root, with sudo if needed, and that run one set-up at a time.
# shellcheck shell=bash

# become_root SCRIPT ARGUMENT…: returns if the user is root, otherwise starts SCRIPT again as root.
# Keeps PATH, because Node may be installed for the calling user only (real_node_first), and proxies, registry and certificates,
# without which nothing is fetched in a company's network: by name, because an address may hold a password, and everybody sees the
# words of a command.
become_root() {
  local name passed='' kept=()
  if [ "$(id -u)" -eq 0 ]; then
    keep_instance
    return 0
  fi
  if ! command -v sudo >/dev/null; then
    printf 'error: this must run as root, and there is no sudo on this machine: run it in a root shell (su -)\n' >&2
    exit 1
  fi
  for name in http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY \
    NODE_EXTRA_CA_CERTS npm_config_{registry,cafile} NPM_CONFIG_{REGISTRY,CAFILE}; do
    if [ -n "${!name:-}" ]; then passed+=$name,; fi
  done
  if [ -n "$passed" ]; then kept=("--preserve-env=${passed}no_proxy,NO_PROXY"); fi
  printf 'asking for root with sudo\n'
  exec sudo "${kept[@]}" env "PATH=$(real_node_first)" "SVC_INSTANCE=${SVC_INSTANCE:-}" "CI=${CI:-}" "$@"
}

# real_node_first: prints PATH, with the directory of the Node that runs here before all others where `node` is only what a version
# manager (asdf, mise, volta, nodenv) starts it by: that looks for its settings in the home directory, and root has another.
real_node_first() {
  local found real
  found=$(readlink -f "$(command -v node)") && real=$(node -p process.execPath 2>/dev/null) && [ -x "$real" ] && [ "$found" != "$(readlink -f "$real")" ] &&
    printf '%s:' "${real%/*}"
  printf '%s' "$PATH"
}

# keep_instance: refuses what a user's own sudo would do to another platform: it drops SVC_INSTANCE, which sudo itself was still given.
keep_instance() {
  local named
  if [ -z "${SUDO_UID:-}" ] || [ -n "${SVC_INSTANCE+set}" ] || [ "$(cat "/proc/$PPID/comm" 2>/dev/null)" != sudo ]; then return 0; fi
  named=$(tr '\0' '\n' 2>/dev/null <"/proc/$PPID/environ" | sed -n 's/^SVC_INSTANCE=//p' | tr -dc '[:alnum:]') || return 0
  if [ -n "$named" ]; then
    printf 'error: sudo has dropped SVC_INSTANCE=%s, so this would be done to the platform without a name\n' "$named" >&2
    printf 'what to do: name it behind sudo: sudo env SVC_INSTANCE=%s COMMAND\n' "$named" >&2
    exit 2
  fi
}

# The lock of the set-up and its short notes: in a directory of root's own, because in one that all may write, anybody could hold
# the lock, or put a link where root writes.
LOCK_DIR=/run/svc-setup

# one_at_a_time: makes a second set-up wait, because two at once would disturb each other.
one_at_a_time() {
  own_directory "$LOCK_DIR" 0700
  # The directory itself is locked: no file is made or opened for writing.
  exec 9<"$LOCK_DIR"
  if ! flock -n 9; then
    printf 'waiting for another set-up on this machine to finish\n'
    flock -w 2400 9 || { printf 'error: the other set-up did not finish in 40 minutes\n' >&2; exit 1; }
  fi
}

# own_directory DIRECTORY MODE: makes a directory of root's own. Refuses a link, and one that somebody else has made before.
own_directory() {
  if ! mkdir -m "$2" "$1" 2>/dev/null && { [ -L "$1" ] || [ ! -d "$1" ] || [ "$(stat -c %u "$1")" != "$EUID" ]; }; then
    printf 'error: %s is not a directory of root, but: %s\nremove it, then run this again\n' "$1" "$(stat -c '%F of %U' "$1" 2>&1)" >&2
    exit 1
  fi
  chmod "$2" "$1"
}

# own_temporary_files: mktemp makes its files below a directory that only root may write. On the disk, because /run is small, and
# programs in it can be started where /tmp is mounted noexec. Others may pass, because npm and the build run as the owner
# of the checkout. For a script that holds the lock: what a killed run left is removed.
own_temporary_files() {
  install -d -m 0755 /var/lib/svc
  own_directory /var/lib/svc/tmp 0711
  find /var/lib/svc/tmp -mindepth 1 -maxdepth 1 -exec rm -rf --one-file-system {} + || true
  export TMPDIR=/var/lib/svc/tmp
}
