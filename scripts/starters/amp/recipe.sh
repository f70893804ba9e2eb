# The template amp: what its image holds beside that of the base template. Its hash, with that of the file beside it and of the
# base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='the coding agent Amp, as its maker ships it, without a key'
STARTER_IMAGE=svc/starter/amp

STARTER_PACKAGES=()
declare -A STARTER_SETS=()
STARTER_BUILT=
# By processor: package, version, integrity.
STARTER_NPM=(
  "x86_64 @ampcode/cli-linux-x64 0.0.1790142911-g7618fb sha512-BsQyuBKf9jYno4vknDM9Mx20iOurO8/G14aaHZCMT1H1TlrOIOWH4//1ZwBll1/AneOxc+mqkoF0f3N/3fr/eA=="
)
STARTER_CHANGES=()

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START=
STARTER_READY=
# What a client does first, and what its answer has.
STARTER_FIRST='amp --version'
STARTER_ANSWER='0.0.1790142911-g7618fb'
