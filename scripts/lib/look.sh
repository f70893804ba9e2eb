# Shows the problems of machine/known/checks.mjs. Needs ui.sh, instance.sh and $here.
# shellcheck shell=bash

# look WHEN WORD…: fails with the first problem that stops the set-up; prints warnings to the log, and in the step's note.
look() {
  local found status=0 node=$NODE
  # A new machine is looked at before it has the Node of the programs. What opens a database comes later.
  [ -x "$node" ] || node=node
  found=$("$node" "$here/host/machine/look.mjs" "$@") || status=$?
  case $status in
    0) ;;
    3) fail "$(sed -n 1p <<<"$found")" "$(sed 1d <<<"$found")" ;;
    *) return "$status" ;;
  esac
  [ -z "$found" ] || printf 'warning: %s\n' "$found"
}
