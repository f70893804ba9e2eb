# A server of `scripts/fleet`, such as `postgres`, in the background and without rights: what is killed is started again. Needs
# engine.sh; the script that reads this has $home, the server's own directory, and runs the server when it is called with `run $home`.
# shellcheck shell=bash disable=SC2154

user=nobody

# as_user COMMAND…: in place of this shell, so that its process is the command's.
as_user() { exec setpriv --reuid "$user" --regid nogroup --clear-groups --no-new-privs -- "$@"; }

# keeper: prints the process that keeps the server running; nothing while there is none.
keeper() {
  local pid
  pid=$(cat "$home/supervisor.pid" 2>/dev/null || true)
  if runs "$pid" "host/fleet/$(basename "$0") run $home"; then printf '%s' "$pid"; fi
}

# keep ARGUMENT…: starts that process, unless it is there.
keep() {
  local pid
  pid=$(keeper)
  if [ -n "$pid" ]; then
    # A test that was ended may have left it standing still.
    kill -CONT "$pid"
    return 0
  fi
  detached "$here/host/fleet/$(basename "$0")" run "$home" "$@" >>"$home/log" 2>&1 </dev/null
  printf '%s\n' "$!" >"$home/supervisor.pid"
}

# keep_running SIGNAL COMMAND…: is that process. COMMAND is a function that ends in as_user; SIGNAL is what ends its server.
keep_running() {
  local signal=$1 stopping=0 child=''
  shift
  trap 'stopping=1; if [ -n "$child" ]; then kill -s "$signal" "$child" 2>/dev/null || true; fi' TERM INT
  cd /
  while [ "$stopping" -eq 0 ]; do
    "$@" &
    child=$!
    wait "$child" || true
    if [ "$stopping" -eq 0 ]; then sleep 0.5; fi
  done
  wait "$child" 2>/dev/null || true
}

# await WHAT COMMAND…: waits until the command is true.
await() {
  local what=$1
  shift
  for _ in $(seq 1 600); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  tail -n 20 "$home/log"
  fail "$what did not get ready" "its own log: $home/log"
}

# forget: ends the server and removes all that it has.
forget() {
  local pid
  pid=$(keeper)
  if [ -n "$pid" ]; then
    # It may have ended meanwhile, also between the two.
    kill -TERM "$pid" 2>/dev/null || true
    kill -CONT "$pid" 2>/dev/null || true
    for _ in $(seq 1 300); do
      runs "$pid" "host/fleet/$(basename "$0") run $home" || break
      sleep 0.1
    done
  fi
  rm -rf --one-file-system "$home"
}
