# The operator's own settings: the machine has them in /etc/svc/config.env, and a checkout may have some in .svc/config.env. What the
# machine has stays where a checkout says nothing about it. A checkout changes the settings of a running platform only
# with a word on the command line. Needs ui.sh, engine.sh, instance.sh and services.sh.
# shellcheck shell=bash

own_file=${OWN_SETTINGS:-$OWN_DIR/config.env}
machine_file=$CONFIG_DIR/config.env

# checkout_settings: prints the settings of the checkout as NAME="value", one a line. Checks them line by line, because a root
# shell and systemd read these files.
checkout_settings() {
  local line number=0 name value
  [ -f "$own_file" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    case $line in '' | '#'*) continue ;; esac
    line=${line#export }
    name=${line%%=*}
    value=${line#*=}
    if [[ $line != *=* || ! $name =~ ^(SVC_[A-Z0-9_]+|DATABASE_URL(_FILE)?|NODE_EXTRA_CA_CERTS)$ ]]; then
      fail "line $number of $own_file is not a setting" "write NAME=value with a name that begins with SVC_, or NODE_EXTRA_CA_CERTS"
    fi
    case $value in
      \"*\") value=${value#\"} value=${value%\"} ;;
      \'*\') value=${value#\'} value=${value%\'} ;;
    esac
    printf '%s="%s"\n' "$name" "$(printf '%s' "$value" | sed 's/[\\"$`]/\\&/g')"
  done <"$own_file"
}

# machine_settings: prints those of the machine, which an earlier `up` has checked.
machine_settings() { if [ -f "$machine_file" ]; then grep . "$machine_file" || true; fi; }

# effective_lines: keeps the last line of each name, in the order of the names' first lines.
effective_lines() {
  awk '{ name = $0; sub(/=.*/, "", name); if (!(name in value)) order[++n] = name; value[name] = $0 }
    END { for (i = 1; i <= n; i++) print value[order[i]] }'
}

# wanted_settings HOW: prints the settings that the machine shall have. HOW is
#   machine   those of the machine, whatever this checkout has
#   add       those of the machine, and over them those of the checkout
#   replace   those of the checkout and no others
wanted_settings() {
  case $1 in
    machine) machine_settings ;;
    add) { machine_settings && checkout_settings; } | effective_lines ;;
    replace)
      [ -f "$own_file" ] || fail "this checkout has no $own_file, so it would remove all settings of the machine" \
        "copy $machine_file to it and change that, or make it an empty file"
      checkout_settings | effective_lines
      ;;
  esac
}

# settings_to_change: prints the names whose value in the wanted settings (standard input) is not that of the machine. The
# operators' token is kept in a file of its own.
settings_to_change() {
  local wanted name
  wanted=$(cat)
  {
    grep -vxF -f <(machine_settings) <<<"$wanted" || true
    machine_settings | while IFS= read -r line; do
      grep -q "^${line%%=*}=" <<<"$wanted" || printf '%s\n' "$line"
    done
  } | sed -n 's/=.*//p' | sort -u | while read -r name; do
    if [ "$name" = SVC_ADMIN_TOKEN ] && [ "$(value_in "$wanted" "$name")" = "$(admin_token)" ]; then continue; fi
    printf '%s\n' "$name"
  done
}

# value_in TEXT NAME: like setting, for a text.
value_in() { sed -n "s/^$2=//p" <<<"$1" | tail -n 1 | sed -e 's/^"\(.*\)"$/\1/' -e 's/\\\([\\"$`]\)/\1/g'; }

# shown NAME VALUE: a value as it may be printed.
shown() {
  case $1 in
    *_FILE | *_FILE_PREVIOUS) printf '%s' "${2:-(not set)}" ;;
    *TOKEN* | *KEY* | *SEED* | *SECRET* | *PASSWORD*) if [ -n "$2" ]; then printf '(a secret)'; else printf '(not set)'; fi ;;
    *) printf '%s' "${2:-(not set)}" | sed -E 's|://[^/@]*@|://…@|g' ;;
  esac
}

# difference: prints how the wanted settings (standard input) differ from those of the machine, a line each.
difference() {
  local wanted name before after
  wanted=$(cat)
  for name in $(settings_to_change <<<"$wanted"); do
    before=$(setting "$machine_file" "$name")
    after=$(value_in "$wanted" "$name")
    printf '%s: %s -> %s\n' "$name" "$(shown "$name" "$before")" "$(shown "$name" "$after")"
  done
}

# settings_kept: prints the names of the machine's settings that this checkout lacks.
settings_kept() {
  local own
  own=$(checkout_settings) || return 1
  machine_settings | sed 's/=.*//' | while read -r name; do grep -q "^$name=" <<<"$own" || printf '%s\n' "$name"; done
}

platform_runs() {
  local program
  for program in "${PROGRAMS[@]}"; do
    if service_runs "$program"; then return 0; fi
  done
  return 1
}

# settings_stay HOW: fails when this checkout would change the settings of a platform that runs and HOW is not the word for it.
settings_stay() {
  local changes kept
  if [ "$1" = machine ] || [ ! -f "$machine_file" ]; then return 0; fi
  changes=$(wanted_settings "$1" | difference) || return 1
  if [ "$1" = add ] && [ -n "$changes" ] && platform_runs; then
    printf 'what %s would change on this machine:\n%s\n' "$own_file" "$changes"
    fail "this checkout would change settings of the running platform: $(paste -sd ';' <<<"$changes" | sed 's/;/; /g')" \
      "'./scripts/up --change-settings' gives the machine exactly the settings of $own_file; to leave them, take these lines out of it ($machine_file has the machine's)"
  fi
  kept=''
  if [ "$1" = add ]; then kept=$(settings_kept | paste -sd ' ') || return 1; fi
  note "${changes:+changed: $(paste -sd ';' <<<"$changes" | sed 's/;/; /g')}${kept:+this checkout lacks $kept: kept}"
}
