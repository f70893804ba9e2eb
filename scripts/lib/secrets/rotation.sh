# Replaces secrets in the files that the programs read them from. The earlier secret stays valid beside the new one. Each file
# changes in one step, so that a run that is killed leaves the file as it was or as it should be.
# Needs instance.sh (setting).
# shellcheck shell=bash

new_secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }

# rewrite FILE TEXT: replaces FILE in one step that survives a power cut; keeps owner and mode. Takes the whole text, because a
# pipe whose writer is killed ends like one that is complete.
rewrite() {
  (umask 077 && printf '%s\n' "$2" >"$1.new") &&
    chown --reference="$1" "$1.new" &&
    chmod --reference="$1" "$1.new" &&
    sync "$1.new" &&
    mv "$1.new" "$1" &&
    sync "$(dirname "$1")"
}

# replace_secret FILE NAME: gives NAME in a file of settings a new value and adds the present one to NAME_PREVIOUS. Fails when
# NAME has no value, or one that cannot be in a list.
replace_secret() {
  local file=$1 name=$2 current previous new line text=''
  current=$(setting "$file" "$name")
  previous=$(setting "$file" "${name}_PREVIOUS")
  new=$(new_secret)
  [[ -n $current && $current != *,* && -n $new ]] || return 1
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      "$name="*) text+="$name=$new"$'\n' ;;
      "${name}_PREVIOUS="*) ;;
      *) text+=$line$'\n' ;;
    esac
  done <"$file"
  rewrite "$file" "${text}${name}_PREVIOUS=$current${previous:+,$previous}"
}

# drop_previous FILE NAME: removes the earlier values of NAME.
drop_previous() {
  local text
  text=$(grep -v "^${2}_PREVIOUS=" "$1") && rewrite "$1" "$text"
}

# replace_admin_token FILE SECONDS: puts a new token first. The present ones end after SECONDS, or earlier where they do so anyway.
replace_admin_token() {
  local file=$1 end now text line token until
  now=$(date -u +%FT%TZ)
  end=$(date -u -d "+$2 seconds" +%FT%TZ)
  text=$(new_secret)
  [ -n "$text" ] || return 1
  while IFS= read -r line || [ -n "$line" ]; do
    read -r token until <<<"$line"
    # The text of these times is in their order.
    if [[ -z $until || $until > $end ]]; then until=$end; fi
    if [[ -n $token && $until > $now ]]; then text+=$'\n'"$token $until"; fi
  done <"$file"
  rewrite "$file" "$text"
}

# add_first_line FILE: puts a new key before those that the file has.
add_first_line() {
  local new present
  new=$(new_secret)
  present=$(cat "$1")
  [[ -n $new && -n $present ]] && rewrite "$1" "$new"$'\n'"$present"
}
