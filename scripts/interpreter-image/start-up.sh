#!/bin/sh
# Runs the code interpreter in the foreground, as root: kernels may install packages. Templates name this path as their
# start command.
[ "$(id -u)" -eq 0 ] || exec sudo "$0" "$@"
export LANG="${LANG:-C.UTF-8}"
exec /usr/local/bin/node /opt/interpreter/main.js
