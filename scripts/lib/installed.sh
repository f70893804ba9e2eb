# The installed versions of the programs.
# shellcheck shell=bash

# Those that no instance runs any more. Runtimes of envd stay: paused sandboxes need the one they had.
remove_unused_programs() {
  local directory name
  for directory in "$INSTALLED"/app/*/; do
    directory=${directory%/}
    name=$(basename "$directory")
    if [ -L "$directory" ] || [ ! -d "$directory" ]; then continue; fi
    find "$INSTALLED/app" -maxdepth 1 -type l -name 'current*' -lname "$name" | grep -q . || rm -rf "$directory"
  done
}
