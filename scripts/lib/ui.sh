# Shows the progress of a script: one line for each step with its seconds, details in a log
# file, and on failure what failed, the way out and the end of that log.
# shellcheck shell=bash

# The log file of the steps, set by use_log. A host script that runs alone logs to stderr.
LOG_FILE=${LOG_FILE:-}

# use_log FILE: details of every later step are appended to FILE (root only: it may name settings).
use_log() {
  LOG_FILE=$1
  mkdir -p "$(dirname "$LOG_FILE")"
  if [ "$(stat -c %s "$LOG_FILE" 2>/dev/null || echo 0)" -gt 10000000 ]; then mv "$LOG_FILE" "$LOG_FILE.1"; fi
  (umask 077 && : >>"$LOG_FILE")
  export LOG_FILE
}

# note TEXT: the short remark a step leaves beside its name ("already running").
note() {
  if [ -n "${STEP_NOTE:-}" ]; then printf '%s' "$*" >"$STEP_NOTE"; else printf '%s\n' "$*"; fi
}

# fail WHAT WAY_OUT: ends a step; both texts are shown on the terminal.
fail() {
  if [ -n "${STEP_NOTE:-}" ]; then
    printf '%s\n%s' "$1" "${2:-}" >"$STEP_NOTE.fail"
  else
    printf 'error: %s\n%s\n' "$1" "${2:-}" >&2
  fi
  exit 1
}

seconds_since() { # START [END] in the form of $EPOCHREALTIME → "1.4"
  local end=${2:-$EPOCHREALTIME}
  awk -v a="${1/,/.}" -v b="${end/,/.}" 'BEGIN { printf "%.1f", b - a }'
}

# step TITLE COMMAND…: runs COMMAND with its output in the log, shows progress while it runs.
step() {
  local title=$1 start=$EPOCHREALTIME notes
  shift
  notes=$(mktemp -d)
  start_command "$title" "$notes" "$@"
  end_step "$title" "$notes" "$start" $!
}

# step_aside TITLE COMMAND…: starts COMMAND as a step that takes long beside the steps that follow; its output goes to a log of
# its own, and end_aside shows it. There is one such step at a time.
step_aside() {
  aside_title=$1 aside_start=$EPOCHREALTIME
  shift
  aside_notes=$(mktemp -d)
  LOG_FILE=$LOG_FILE.aside start_command "$aside_title" "$aside_notes" "$@"
  aside_pid=$!
}

# end_aside: waits for the step aside, with its exit status. Its log goes to the end of the usual one.
end_aside() {
  local status=0 own=$LOG_FILE.aside
  LOG_FILE=$own end_step "$aside_title" "$aside_notes" "$aside_start" "$aside_pid" || status=$?
  cat "$own" >>"$LOG_FILE" && rm -f "$own"
  return "$status"
}

# start_command TITLE NOTES COMMAND…: runs COMMAND in the background, with its output in the log; $! is its process.
start_command() {
  local title=$1 notes=$2
  shift 2
  (umask 077 && : >>"$LOG_FILE")
  printf '\n== %s %s\n' "$(date -u +%FT%TZ)" "$title" >>"$LOG_FILE"
  (
    status=0
    STEP_NOTE="$notes/note" "$@" || status=$?
    printf %s "$EPOCHREALTIME" >"$notes/end"
    exit "$status"
  ) >>"$LOG_FILE" 2>&1 </dev/null &
}

# end_step TITLE NOTES START PID: shows progress until the command ends, then its line or its failure.
end_step() {
  local title=$1 notes=$2 start=$3 pid=$4 status=0
  show_progress "$title" "$pid" "$start"
  wait "$pid" || status=$?
  if [ "$status" -eq 0 ]; then
    printf '%s  ✓ %-22s %s (%s s)\n' "${CLEAR:-}" "$title" "$(cat "$notes/note" 2>/dev/null || true)" "$(seconds_since "$start" "$(cat "$notes/end")")"
    rm -rf "$notes"
    return 0
  fi
  explain_failure "$title" "$notes" "$(seconds_since "$start")"
  rm -rf "$notes"
  return "$status"
}

# Shows progress: on a terminal one line that counts seconds, in a log file a line every fifteen seconds.
show_progress() {
  local title=$1 pid=$2 start=$3 ticks=0
  CLEAR=
  if [ -t 1 ]; then CLEAR=$'\r\e[K'; fi
  # Most steps find nothing to do and end within a moment, before the first line of progress.
  for _ in 1 2 3 4 5; do
    if kill -0 "$pid" 2>/dev/null; then sleep 0.02 || true; fi
  done
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.1 || true
    ticks=$((ticks + 1))
    if [ -t 1 ]; then
      [ $((ticks % 5)) -ne 0 ] || printf '\r\e[K  … %-22s %s s' "$title" "$(seconds_since "$start")"
    elif [ $((ticks % 150)) -eq 0 ]; then
      printf '  … %-22s %s s\n' "$title" "$(seconds_since "$start")"
    fi
  done
}

explain_failure() {
  local title=$1 notes=$2 elapsed=$3 what='' way_out='' said
  if [ -f "$notes/note.fail" ]; then
    what=$(sed -n 1p "$notes/note.fail")
    way_out=$(sed 1d "$notes/note.fail")
  fi
  {
    printf '%s  ✗ %-22s %s (%s s)\n' "${CLEAR:-}" "$title" "${what:-failed}" "$elapsed"
    # Only what this step has written: the steps before it have nothing to do with its failure.
    said=$(sed -n "H; /^== [0-9-]*T[0-9:]*Z /{ s/.*//; x }; \${ x; p }" "$LOG_FILE" | grep -v '^$' | tail -n 25 || true)
    [ -z "$said" ] || printf '\n    last lines of %s:\n%s\n' "${LOG_FILE%.aside}" "$(sed 's/^/    | /' <<<"$said")"
    [ -z "$way_out" ] || printf '\n    what to do: %s\n' "$way_out"
  } >&2
}
