# The steps that make a machine able to run the platform; the same for `up` and `test`.
# Needs ui.sh and $here, the directory scripts/.
# shellcheck shell=bash

: "${here:?}"

set_up_host() {
  step 'machine' "$here/host/machine"
  step 'system packages' "$here/host/packages"
  step 'kernel' "$here/host/kernel"
  step 'Docker engine' "$here/host/docker-engine"
  step 'CRIU' "$here/host/criu"
  step 'runtime svc' "$here/host/runtime"
  step 'template base' "$here/host/base-image" "$SHARED_STATE"
  step 'npm packages' "$here/host/modules" "$SHARED_STATE"
  step 'build' "$here/host/build"
  step 'envd runtime' "$here/host/envd-runtime"
}
