# Functions that become root, with sudo if needed, and that run one set-up at a time.
# shellcheck shell=bash

# become_root SCRIPT ARGUMENT…: returns if the user is root, otherwise starts SCRIPT again as root.
# Keeps PATH, because Node may be installed for the calling user only.
become_root() {
  if [ "$(id -u)" -eq 0 ]; then return 0; fi
  if ! command -v sudo >/dev/null; then
    printf 'error: this must run as root, and there is no sudo on this machine: run it in a root shell (su -)\n' >&2
    exit 1
  fi
  printf 'asking for root with sudo\n'
  exec sudo env "PATH=$PATH" "SVC_INSTANCE=${SVC_INSTANCE:-}" "CI=${CI:-}" "$@"
}

# one_at_a_time COMMAND…: makes a second set-up wait, because two at once would disturb each other.
one_at_a_time() {
  mkdir -p /run/lock
  exec 9>/run/lock/svc-setup.lock
  if ! flock -n 9; then
    printf 'waiting for another set-up on this machine to finish\n'
    flock -w 2400 9 || { printf 'error: the other set-up did not finish in 40 minutes\n' >&2; exit 1; }
  fi
}
