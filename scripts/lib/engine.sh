# Functions for the Docker daemon of this machine: its socket, its process, its settings file.
# shellcheck shell=bash

DOCKER_SOCKET=/var/run/docker.sock

# Prefers the packaged Docker client, because a client of another version may come earlier in PATH.
docker_cli() { DOCKER_HOST="unix://$DOCKER_SOCKET" "$([ -x /usr/bin/docker ] && echo /usr/bin/docker || echo docker)" "$@"; }

engine_answers() { local_curl -fsS -m 5 --unix-socket "$DOCKER_SOCKET" http://docker/_ping >/dev/null 2>&1; }

# runs PID WORD: whether process PID exists and its command line contains WORD. A pid file alone
# proves nothing: /run may survive a reboot, and process ids are reused.
runs() {
  [ -n "${1:-}" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$2"
}

engine_pid() {
  local pid
  pid=$(cat /var/run/docker.pid 2>/dev/null || true)
  if ! runs "$pid" dockerd; then pid=$(pgrep -o -x dockerd || true); fi
  printf '%s' "$pid"
}

# The log of the Docker daemon that `up` starts.
ENGINE_LOG=/var/log/svc/dockerd.log

# own_engine_pid: prints the process of the Docker daemon if `up` started it, which its log tells: the file with the process id may
# have been removed by a cleaner of /run.
own_engine_pid() {
  local pid
  pid=$(engine_pid)
  if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/fd/1")" = "$ENGINE_LOG" ]; then printf '%s' "$pid"; fi
}

# The file that the daemon reads its settings from: --config-file on its command line, else the usual one.
engine_config_file() {
  local pid file=''
  pid=$(engine_pid)
  if [ -n "$pid" ]; then
    file=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n -e 's/^--config-file=//p' -e '/^--config-file$/{n;p;}' | head -n 1)
  fi
  printf '%s' "${file:-/etc/docker/daemon.json}"
}

under_systemd() { [ -d /run/systemd/system ]; }

# detached COMMAND…: runs COMMAND in the background in a new session. COMMAND inherits only the three standard files:
# not the lock of the set-up, and no pipe whose reader waits for its end.
detached() {
  (
    for open in /proc/"$BASHPID"/fd/*; do
      open=${open##*/}
      if [ "$open" -gt 2 ]; then eval "exec $open>&-"; fi
    done
    exec setsid "$@"
  ) &
}

# private_log FILE: creates FILE for root only, also if an earlier version made it readable for all users.
private_log() {
  (umask 077 && : >>"$1")
  chmod 0600 "$1"
}

# bound_log FILE PID: keeps the log FILE, which process PID writes, below twice this size.
LOG_BYTES=50000000
bound_log() { detached "$here/host/engine/bound-log" "$1" "$LOG_BYTES" "$2" >/dev/null 2>&1 </dev/null; }
