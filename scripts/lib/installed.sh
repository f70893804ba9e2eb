# The installed versions of the programs, and the directories that all instances share.
# shellcheck shell=bash

# shared_directories: makes them, and repairs modes that an earlier version took from the user's umask: the orchestrator's user must
# be able to pass.
shared_directories() {
  install -d -m 0755 "$INSTALLED" "$INSTALLED"/{app,bin,criu,envd-runtime} "$SHARED_STATE" ||
    fail "the directories below $INSTALLED and $SHARED_STATE cannot be made" "make $INSTALLED and $SHARED_STATE writable for root"
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
