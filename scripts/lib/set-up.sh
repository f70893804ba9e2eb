# The steps of `up` and `test` that prepare a machine for the platform.
# Needs ui.sh and $here, the directory scripts/.
# shellcheck shell=bash

: "${here:?}"

set_up_host() {
  step 'machine' "$here/host/machine/check"
  step 'system packages' "$here/host/machine/packages"
  step 'kernel' "$here/host/machine/kernel"
  step 'Docker daemon' "$here/host/engine/start"
  step 'CRIU' "$here/host/criu/install"
  step 'runtime svc' "$here/host/runtime/register"
  step 'template base' "$here/host/engine/base-image" "$SHARED_STATE"
  step 'npm packages' "$here/host/programs/modules" "$SHARED_STATE"
  step 'build' "$here/host/programs/build"
  step 'envd runtime' "$here/host/programs/envd-runtime"
}
