# The template opencode: what its image holds beside that of the base template. Its hash, with that of the file beside it and of the
# base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='the coding agent opencode, as its maker ships it, without a key'
STARTER_IMAGE=svc/starter/opencode

STARTER_PACKAGES=()
declare -A STARTER_SETS=()
STARTER_BUILT=
# By processor: package, version, integrity.
STARTER_NPM=(
  "x86_64 opencode-linux-x64 1.18.33 sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw=="
)
# The version is the one of the image: a sandbox does not change it by itself.
STARTER_CHANGES=("ENV OPENCODE_DISABLE_AUTOUPDATE=1")

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START=
STARTER_READY=
# What a client does first, and what its answer has.
STARTER_FIRST='opencode --version'
STARTER_ANSWER='1.18.33'
