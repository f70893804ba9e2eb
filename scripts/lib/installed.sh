# The installed versions of the programs, their user, and the directories that all instances share. Needs instance.sh.
# shellcheck shell=bash

# shared_directories: makes them, and repairs modes that an earlier version took from the user's umask, in the installed versions
# too, because those are never made again: the orchestrator's user and users in sandboxes must be able to read and pass, and
# nobody but root may write.
shared_directories() {
  local public=("$INSTALLED"/{app,bin,criu,envd-runtime}) wrong
  { install -d -m 0755 "$INSTALLED" "${public[@]}" "$SHARED_STATE" &&
    wrong=$(find "${public[@]}" -xdev ! -type l \( -type d ! -perm -0755 -o ! -perm -0444 -o -perm /0022 \) -printf . -exec chmod u=rwX,go=rX {} +); } ||
    fail "the directories below $INSTALLED and $SHARED_STATE cannot be made" "make $INSTALLED and $SHARED_STATE writable for root"
  [ -z "$wrong" ] || note "modes of ${#wrong} files and directories below $INSTALLED repaired"
}

# make_service_user: that of orchestrator and edge, whose files are no other user's.
make_service_user() {
  getent passwd "$SERVICE_USER" >/dev/null ||
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$SERVICE_USER"
}

# node_identity: prints what tells one Node of the programs from another. Not its time, which `npm ci` sets: package-lock.json holds the
# hash of its package, so one version has one content.
node_identity() { "$NODE" --version && stat -L -c %s "$NODE"; }

# installed_packages: prints the packages that `up` has installed. Where it has installed none, there is no list of them.
installed_packages() {
  if [ -f "$SHARED_STATE/packages" ]; then sort -u "$SHARED_STATE/packages" | paste -sd ' '; fi
}

# Removes versions that no instance runs any more. Runtimes of envd stay, because paused sandboxes need theirs.
remove_unused_programs() {
  local directory name
  for directory in "$INSTALLED"/app/*/; do
    directory=${directory%/}
    name=$(basename "$directory")
    if [ -L "$directory" ] || [ ! -d "$directory" ]; then continue; fi
    find "$INSTALLED/app" -maxdepth 1 -type l -name 'current*' -lname "$name" | grep -q . || rm -rf "$directory"
  done
}

# remove_trees DIRECTORY…: removes each with its content. A mount point, where an operator has a disk of its own, is emptied and stays.
remove_trees() {
  local directory
  for directory in "$@"; do
    rm -rf -- "$directory" || only_mount_points "$directory" || return 1
  done
}

only_mount_points() { # DIRECTORY
  local empty
  [ -z "$(find "$1" ! -type d -print -quit)" ] || return 1
  find "$1" -type d -empty | while IFS= read -r empty; do mountpoint -q -- "$empty" || return 1; done
}
