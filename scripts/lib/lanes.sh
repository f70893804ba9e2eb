# Runs sets of tests one after another, or in parallel lanes. A set that fails does not keep the others from running.
# Failures are kept in files, because each lane is a separate process.
# Needs ui.sh and $work, a directory of the caller's for as long as it runs.
# shellcheck shell=bash

: "${work:?}"

# attempt TITLE COMMAND…: runs COMMAND and keeps its title and exit status when it fails.
attempt() {
  local title=$1 status=0 start=$EPOCHREALTIME
  shift
  printf '\n=== %s\n' "$title"
  "$@" || status=$?
  printf '=== %s: %s (%s s)\n' "$title" "$([ "$status" -eq 0 ] && echo passed || echo "FAILED with status $status")" "$(seconds_since "$start")"
  printf '%8s s  %s\n' "$(seconds_since "$start")" "$title" >>"$work/times"
  if [ "$status" -ne 0 ]; then printf '%s %s\n' "$status" "$title" >>"$work/failures"; fi
  return "$status"
}

# attempt_aside TITLE COMMAND…: like attempt, but prints the output in one piece when COMMAND has ended, because the
# lines of two lanes would mix otherwise.
attempt_aside() {
  local status=0 output
  output=$(mktemp -p "$work" output.XXXXXX)
  attempt "$@" >"$output" 2>&1 || status=$?
  flock "$work" cat "$output"
  rm -f "$output"
  return "$status"
}

# claim SET: true in the first lane that asks for SET, which then runs it.
claim() {
  mkdir "$work/claimed-$1" 2>/dev/null
}

# Process groups of the lanes that were started.
lanes=()

# start_lane FUNCTION: runs FUNCTION in the background in a new process group, so that all its processes can be stopped.
start_lane() {
  set -m
  "$1" </dev/null &
  lanes+=("$!")
  set +m
}

# wait_for_lanes: returns when all lanes have ended. Prints the running sets every minute, as there is no other output.
wait_for_lanes() {
  local start=$EPOCHREALTIME next=$((SECONDS + 60)) lane
  for lane in "${lanes[@]}"; do
    while kill -0 "$lane" 2>/dev/null; do
      sleep 0.5
      if [ "$SECONDS" -ge "$next" ]; then
        printf '… %s s, still running: %s\n' "$(seconds_since "$start")" "$(titles_of_running)"
        next=$((SECONDS + 60))
      fi
    done
  done
  lanes=()
}

# stop_lanes: ends every process of every lane with SIGTERM, after 20 seconds with SIGKILL, and prints the output of the
# sets that were cut short.
stop_lanes() {
  local lane
  for lane in "${lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null; done
  for lane in "${lanes[@]}"; do
    for _ in {1..200}; do
      if ! group_lives "$lane"; then break; fi
      sleep 0.1
    done
    kill -KILL -- "-$lane" 2>/dev/null
  done
  if [ "${#lanes[@]}" -gt 0 ]; then cat "$work"/output.* 2>/dev/null; fi
  lanes=()
}

# A zombie does not count.
group_lives() { # PROCESS GROUP
  ps -eo pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { found = 1 } END { exit !found }'
}

titles_of_running() {
  sed -sn '2s/^=== //p' "$work"/output.* 2>/dev/null | paste -sd , | sed 's/,/, /g'
}

# worst_status: prints the highest exit status of the failed sets, 0 if none failed.
worst_status() {
  if [ ! -e "$work/failures" ]; then echo 0; else cut -d ' ' -f 1 "$work/failures" | sort -n | tail -n 1; fi
}

# print_failures: prints the titles of the failed sets at the end, so that a failed check among passed tests is not
# overlooked.
print_failures() {
  if [ -e "$work/failures" ]; then sed -E 's/^[0-9]+ /FAILED: /' "$work/failures"; fi
}

# print_times: prints how long each set took, the longest first.
print_times() {
  if [ -e "$work/times" ]; then sort -rn "$work/times"; fi
}
