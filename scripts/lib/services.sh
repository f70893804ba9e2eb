# Runs the programs as services: as systemd units if systemd runs, otherwise as supervised background
# processes. Needs engine.sh (runs, under_systemd) and instance.sh.
# shellcheck shell=bash

unit_of() { printf 'svc-%s%s.service' "$1" "$SUFFIX"; }

# supervisor PROGRAM: prints the process that keeps PROGRAM running without systemd; nothing while there is none. A cleaner of /run may
# have removed the files with the process ids: then the processes are found by their command lines, and the files written again.
supervisor() {
  local pid child
  pid=$(cat "$RUN_DIR/$1.supervisor.pid" 2>/dev/null || true)
  if ! runs "$pid" "supervise $SUFFIX $1"; then
    pid=$(pgrep -o -u "$EUID" -f "^/bin/bash (-p )?$APP/supervise $SUFFIX $1\$" || true)
    [ -n "$pid" ] || return 0
    install -d -m 0755 "$RUN_DIR"
    printf '%s\n' "$pid" >"$RUN_DIR/$1.supervisor.pid"
  fi
  if [ ! -e "$RUN_DIR/$1.pid" ]; then
    child=$(pgrep -P "$pid" -f "$APP/$1\.js\$" || true)
    if [ -n "$child" ]; then printf '%s\n' "$child" >"$RUN_DIR/$1.pid"; fi
  fi
  printf '%s' "$pid"
}

service_runs() { # PROGRAM
  if under_systemd; then
    systemctl is-active --quiet "$(unit_of "$1")"
  else
    [ -n "$(supervisor "$1")" ]
  fi
}

# Prints the process id of the program itself, for inspection or a kill.
service_pid() { # PROGRAM
  if under_systemd; then
    systemctl show --property MainPID --value "$(unit_of "$1")"
  else
    supervisor "$1" >/dev/null
    cat "$RUN_DIR/$1.pid" 2>/dev/null
  fi
}

# Prints a hash of the program and its settings; when it changes, a running program must be restarted.
service_fingerprint() { # PROGRAM
  { readlink "$APP" "$ENVD_RUNTIME"; cat "$CONFIG_DIR/$1.env" "$CONFIG_DIR/$1.own.env"; } | sha256sum
}

service_start() { # PROGRAM
  service_fingerprint "$1" >"$RUN_DIR/$1.fingerprint"
  if under_systemd; then
    # A program that has ended at each start is refused for the rest of the minute otherwise, also with its mistake mended.
    systemctl reset-failed "$(unit_of "$1")" 2>/dev/null || true
    systemctl enable --quiet "$(unit_of "$1")" && systemctl restart "$(unit_of "$1")"
    return
  fi
  (umask 027 && : >>"$LOG_DIR/$1.log")
  # The program does not inherit this environment, except for what the tests set.
  detached env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    ${SVC_LONGEST_RESTART_DELAY_S:+"SVC_LONGEST_RESTART_DELAY_S=$SVC_LONGEST_RESTART_DELAY_S"} \
    "$APP/supervise" "$SUFFIX" "$1" >>"$LOG_DIR/$1.log" 2>&1 </dev/null
  # A log without a limit would fill the disk.
  bound_log "$LOG_DIR/$1.log" "$!"
  # Waits for the pid file, so that it exists when this function returns.
  for _ in $(seq 1 100); do
    if service_runs "$1"; then return 0; fi
    sleep 0.02
  done
  return 1
}

service_stop() { # PROGRAM
  local supervisor child
  if under_systemd; then
    systemctl disable --quiet --now "$(unit_of "$1")" 2>/dev/null || true
    return 0
  fi
  supervisor=$(supervisor "$1")
  [ -n "$supervisor" ] || return 0
  child=$(cat "$RUN_DIR/$1.pid" 2>/dev/null || true)
  kill -TERM "$supervisor"
  for _ in $(seq 1 700); do
    runs "$supervisor" "supervise $SUFFIX $1" || return 0
    sleep 0.1
  done
  kill -KILL "$supervisor"
  if runs "$child" "$1.js"; then kill -KILL "$child"; fi
}

# Prints the URL at which a program answers whether it is ready.
ready_url() { # PROGRAM
  case $1 in
    orchestrator) printf 'http://127.0.0.1:%s/readyz?verbose' "$(effective orchestrator SVC_API_PORT)" ;;
    edge) printf 'http://127.0.0.1:%s/readyz?verbose' "$(effective edge SVC_EDGE_STATUS_PORT)" ;;
    agent)
      # A node that joins speaks TLS, at the address at which the orchestrator reaches it.
      if [ "$ROLE" = node ] || [ -n "$(setting "$CONFIG_DIR/agent.env" SVC_JOIN_TOKEN_FILE)" ]; then
        printf 'https://%s:%s/readyz?verbose' "$(url_host "$(effective agent SVC_AGENT_HOST)")" "$(effective agent SVC_AGENT_PORT)"
      else
        printf 'http://127.0.0.1:%s/readyz?verbose' "$(effective agent SVC_AGENT_PORT)"
      fi
      ;;
  esac
}

# url_host ADDRESS: the address as it stands in a URL.
url_host() { case $1 in *:*) printf '[%s]' "$1" ;; *) printf '%s' "$1" ;; esac; }

# effective PROGRAM NAME: prints a setting as the program sees it; the operator's own file wins.
effective() {
  local value
  value=$(setting "$CONFIG_DIR/config.env" "$2")
  printf '%s' "${value:-$(setting "$CONFIG_DIR/$1.env" "$2")}"
}

# console_url API_URL: prints where this machine reaches the console; nothing where it is off.
console_url() {
  local listen host
  [ "$(effective orchestrator SVC_CONSOLE)" != off ] || return 0
  listen=$(effective orchestrator SVC_CONSOLE_LISTEN)
  host=${listen%:*}
  case $host in
    '') printf '%s/console/' "$1" ;;
    0.0.0.0 | '[::]') printf 'http://127.0.0.1:%s/console/' "${listen##*:}" ;;
    *) printf 'http://%s:%s/console/' "$host" "${listen##*:}" ;;
  esac
}
