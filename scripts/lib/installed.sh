# The installed versions of the programs.
# shellcheck shell=bash

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
