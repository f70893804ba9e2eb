# Replaces the API key of the machine's own users. A note says how far a run has come, so that one that is killed at any line leaves
# a key that works in each file, and the next run ends or removes what nobody uses.
# Needs ui.sh, instance.sh, api-key.sh, rotation.sh and api-calls.sh.
# shellcheck shell=bash

# replace_api_key SECONDS: puts a new key into .svc/env and the machine's file; the present one ends after SECONDS.
replace_api_key() {
  local file=$OWN_DIR/env noted=$CONFIG_DIR/api-key.rotation made old name key keys end change
  made=$(setting "$noted" KEY)
  key=$(first_valid "$made" "$(sed -n 's/^SVC_API_KEY=//p' "$file" 2>/dev/null || true)" "$(kept_api_key)")
  [ -n "$key" ] || fail "$file has no SVC_API_KEY" "run scripts/up"
  keys=$(call GET /api-keys "X-API-Key: $key")
  # The steps from here on belong together. The note is for a run that is killed between two of them.
  trap '' HUP INT TERM
  if [ "$key" = "$made" ]; then
    printf 'The new key of an earlier run is there: going on with that rotation.\n'
    old=$(setting "$noted" OLD)
  else
    delete_lost_key "$(setting "$noted" NAME)" "$key" "$keys"
    # Only the mask of the key is on a command line.
    old=$(read_json "it.filter(({ mask }) => mask.maskedValuePrefix + mask.maskedValueSuffix === '${key:4:2}${key: -4}').map(({ id }) => id).join()" <<<"$keys")
    [[ -n $old && $old != *,* ]] || fail "several keys look like the present one" "replace it by hand: docs/operating/keys.md, API keys"
    name=$(new_secret)
    name="scripts/rotate $(date -u +%FT%TZ) ${name:0:6}"
    note_rotation "OLD=$old" "NAME=$name"
    made=$(call POST /api-keys "X-API-Key: $key" "{\"name\":\"$name\"}" | read_json it.key)
    note_rotation "OLD=$old" "NAME=$name" "KEY=$made"
  fi
  put_api_key "$file" "$made"
  keep_api_key "$made"
  end=$(date -u -d "+$1 seconds" +%FT%TZ)
  # A key that ends earlier anyway, or has been deleted since, stays as it is.
  change=$(read_json "it.filter(({ id, expiresAt }) => id === '$old' && !(expiresAt && expiresAt <= '$end')).map(({ name }) => JSON.stringify({ name, expiresAt: '$end' })).join()" <<<"$keys")
  if [ -n "$change" ] && [ "$1" -gt 0 ]; then
    call PATCH "/api-keys/$old" "X-API-Key: $made" "$change" >/dev/null
  elif [ -n "$change" ]; then
    # An end must be in the future.
    call DELETE "/api-keys/$old" "X-API-Key: $made" >/dev/null
  fi
  rm -f "$noted"
  printf 'The new key is in %s; the earlier one ends at %s at the latest.\n' "$file" "$end"
}

# first_valid KEY…: prints the first key that the platform does not refuse, else the last one; nothing where all are empty.
first_valid() {
  local key last=''
  for key in "$@"; do
    [ -n "$key" ] || continue
    last=$key
    [ "$(local_curl -s -m 60 -o /dev/null -w '%{http_code}' -H @- "$api/api-keys" <<<"X-API-Key: $key")" = 401 ] || break
  done
  printf '%s' "$last"
}

# note_rotation LINE…: replaces the note of the rotation in one step.
note_rotation() {
  (umask 077 && printf '%s\n' "$@" >"$CONFIG_DIR/api-key.rotation.new")
  sync "$CONFIG_DIR/api-key.rotation.new"
  mv -T "$CONFIG_DIR/api-key.rotation.new" "$CONFIG_DIR/api-key.rotation"
  sync "$CONFIG_DIR"
}

# delete_lost_key NAME KEY KEYS: a run that was killed before it had written the new key down has left one that nobody has.
delete_lost_key() {
  local lost
  [ -n "$1" ] || return 0
  lost=$(read_json "it.filter(({ name }) => name === '$1').map(({ id }) => id).join()" <<<"$3")
  [ -z "$lost" ] || call DELETE "/api-keys/$lost" "X-API-Key: $2" >/dev/null
}

# put_api_key FILE KEY: a checkout whose `up` has not run yet has no such file, and takes the machine's key later.
put_api_key() {
  local line text=''
  [ -f "$1" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      SVC_API_KEY=*) text+=SVC_API_KEY=$2$'\n' ;;
      E2B_API_KEY=*) text+=E2B_API_KEY=e2b_${2#svc_}$'\n' ;;
      *) text+=$line$'\n' ;;
    esac
  done <"$1"
  rewrite "$1" "${text%$'\n'}"
}
