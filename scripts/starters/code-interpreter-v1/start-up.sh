#!/bin/sh
# Keeps the code interpreter running in the foreground, as root: kernels may install packages. Templates name this path as
# their start command. The interpreter's supervisor starts a killed server again; this starts a killed supervisor.
[ "$(id -u)" -eq 0 ] || exec sudo "$0" "$@"
export LANG="${LANG:-C.UTF-8}"
end() {
  trap - TERM INT
  kill -TERM "$supervisor"
  wait "$supervisor"
  exit 0
}
while :; do
  /usr/local/bin/node /opt/interpreter/main.js &
  supervisor=$!
  trap end TERM INT
  if wait "$supervisor"; then exit 0; fi
  sleep 1
done
