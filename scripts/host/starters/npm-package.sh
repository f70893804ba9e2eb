# Fetches npm packages with pinned hashes, for images. (host/engine/base-node has the same for the base image, whose name is a hash of
# its text.)
# shellcheck shell=bash

# npm_package PACKAGE VERSION INTEGRITY DIRECTORY: unpacks it there. No install script runs: `npm pack` only downloads, as the
# checkout's owner, whose configuration names the registry.
npm_package() {
  local work archive found
  work=$(mktemp -d)
  chown "$(stat -c %u:%g "$CHECKOUT")" "$work"
  (cd "$CHECKOUT" && as_owner timeout 600 npm pack --silent --fetch-retries=1 --pack-destination "$work" "$1@$2") ||
    fail "npm package $1@$2 could not be fetched" "is the npm registry in reach ('npm ping')?"
  archive=$(find "$work" -name '*.tgz')
  found=$("$NODE" -p "'sha512-' + require('crypto').createHash('sha512').update(require('fs').readFileSync(process.argv[1])).digest('base64')" "$archive")
  [ "$found" = "$3" ] || fail "npm package $1@$2 has the hash $found, and not the pinned $3" "look at what the npm registry serves"
  mkdir -p "$4"
  tar -xzf "$archive" -C "$4" --strip-components=1 --no-same-owner
  rm -rf "$work"
}
