# The steps of `up` and `test` that prepare a machine for the platform.
# Needs ui.sh, instance.sh and $here, the directory scripts/.
# shellcheck shell=bash

: "${here:?}"
. "$here/lib/installed.sh"

# set_up_host [JOIN_TOKEN]: with the token a machine that joins takes from the platform what it need not make.
set_up_host() {
  local join_token=${1:-}
  step 'machine' "$here/host/machine/check"
  step 'system packages' "$here/host/machine/packages"
  step 'directories' shared_directories
  step 'kernel' "$here/host/machine/kernel"
  if ! runs_here agent; then
    set_up_programs
    return
  fi
  step 'Docker daemon' "$here/host/engine/start"
  step 'Docker settings' "$here/host/engine/check"
  step 'CRIU' "$here/host/criu/install"
  step 'runtime svc' "$here/host/runtime/register"
  # Both take more than a minute on a new machine, and do not need each other.
  local status=0
  JOIN_TOKEN=$join_token step_aside 'template base' "$here/host/engine/base-image" "$SHARED_STATE"
  set_up_programs || status=$?
  end_aside || status=$?
  return "$status"
}

set_up_programs() {
  # The package brings both.
  if ! is_package; then
    step 'npm packages' "$here/host/programs/modules" &&
      step 'build' "$here/host/programs/build" || return
  fi
  if runs_here agent; then step 'envd runtime' "$here/host/programs/envd-runtime"; fi
}
