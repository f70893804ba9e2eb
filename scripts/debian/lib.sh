# What the maintainer scripts share; scripts/package puts it into each of them.

root=${DPKG_ROOT:-}
# There while an upgrade or a removal finds the platform running: the next configuration brings it up again.
was_running=$root/var/lib/svc/package-was-running
# What a purge needs after the package's files are gone.
removal=$root/var/lib/svc/package-removal

# platforms: those that were set up on this machine, a line each: svc, and svc-NAME for each with a name.
platforms() {
  for directory in "$root"/etc/svc-* "$root"/etc/svc; do
    if [ -e "$directory/orchestrator.env" ] || [ -e "$directory/agent.env" ] || [ -e "$directory/edge.env" ]; then
      printf '%s\n' "${directory##*/}"
    fi
  done
}

# act COMMAND PLATFORM WORD…: a step of the package's scripts for a platform.
act() {
  command=$1
  instance=${2#svc}
  shift 2
  # What calls this reads a list from standard input.
  SVC_INSTANCE=${instance#-} "$command" "$@" </dev/null
}

# runs PLATFORM: whether a program of it runs.
runs() {
  for program in orchestrator agent edge; do
    if act "$root/usr/sbin/svc-platform" "$1" service status "$program" >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

# note_running: writes down which of them run.
note_running() {
  mkdir -p "$root/var/lib/svc"
  platforms | while read -r platform; do
    if runs "$platform"; then printf '%s\n' "$platform"; fi
  done >"$was_running"
  if [ ! -s "$was_running" ]; then rm -f "$was_running"; fi
}
