# The template claude: what its image holds beside that of the base template. Its hash, with that of the file beside it and of the
# base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='the coding agent Claude Code, as its maker ships it, without a key'
STARTER_IMAGE=svc/starter/claude

STARTER_PACKAGES=()
declare -A STARTER_SETS=()
STARTER_BUILT=
# By processor: package, version, integrity.
STARTER_NPM=(
  "x86_64 @anthropic-ai/claude-code-linux-x64 2.1.332 sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0DqiKzLcw=="
  "aarch64 @anthropic-ai/claude-code-linux-arm64 2.1.332 sha512-BlHNEtK38KBPWU31F4lUSS9sHclCyfWbThT1CErvxxH8+XcljYLZlQwdyXBkTD62rw1TgfE1u1a+quMWS0NSJg=="
)
# The version is the one of the image: a sandbox does not change it by itself.
STARTER_CHANGES=("ENV DISABLE_AUTOUPDATER=1")

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START=
STARTER_READY=
# What a client does first, and what its answer has.
STARTER_FIRST='claude --version'
STARTER_ANSWER='(Claude Code)'
