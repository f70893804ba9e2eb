# The template codex: what its image holds beside that of the base template. Its hash, with that of the file beside it and of the
# base image, names the image.
# shellcheck shell=bash disable=SC2034

STARTER_ABOUT='the coding agent OpenAI Codex, as its maker ships it, without a key'
STARTER_IMAGE=svc/starter/codex

STARTER_PACKAGES=()
declare -A STARTER_SETS=()
STARTER_BUILT=
# By processor: package, version, integrity.
STARTER_NPM=(
  "x86_64 @openai/codex 0.171.0-linux-x64 sha512-l66NZkQgdk2C3pbcfULDz42yEUB581MVA6I+Y43Wp4OIqEy73HCdmZ0GTjeAHY2ycuH4N00d9VsLrwT1jxshTw=="
  "aarch64 @openai/codex 0.171.0-linux-arm64 sha512-9z17t4bbUJ9UCIb49O4PoA+ki+45q3rd8nZ8PeH6sYnlKkBld/Xpo/OS3h3Ti954+foshX4o7k5TCU8N7zzqQA=="
)
STARTER_CHANGES=()

STARTER_CPU_COUNT=2
STARTER_MEMORY_MB=2048
STARTER_START=
STARTER_READY=
# What a client does first, and what its answer has.
STARTER_FIRST='codex --version'
STARTER_ANSWER='codex'
