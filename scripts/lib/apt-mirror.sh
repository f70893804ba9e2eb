# Finds the Debian mirror that this machine uses, from its apt sources in either format, so that these
# scripts contain no host name.
# shellcheck shell=bash

# shellcheck disable=SC1091
codename() { (. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}"); }

# apt_source_for OWN SUITE COMPONENTS: a source for SUITE at the address where this machine gets its
# suite OWN, with every option (Signed-By and so on) of the original kept. Prints the format
# ("sources" or "list") on the first line and the source after it; fails when OWN has no source.
apt_source_for() {
  local own=$1 suite=$2 components=$3 found parts=/etc/apt/sources.list.d
  found=$(deb822_stanza "$own" "$suite" "$components" "$parts"/*.sources)
  if [ -n "$found" ]; then
    printf 'sources\n%s\n' "$found"
    return 0
  fi
  found=$(one_line "$own" "$suite" "$components" /etc/apt/sources.list "$parts"/*.list)
  [ -n "$found" ] || return 1
  printf 'list\n%s\n' "$found"
}

# Comments are dropped first: they may stand inside a stanza.
deb822_stanza() { # OWN SUITE COMPONENTS FILE…
  local own=$1 suite=$2 components=$3
  shift 3
  awk 'FNR == 1 { print "" } !/^#/' "$@" 2>/dev/null |
    awk -v own="$own" -v suite="$suite" -v components="$components" '
    function flush(   i) {
      if (types ~ /(^|[ \t])deb([ \t]|$)/ && (" " suites " ") ~ ("[ \t]" own "[ \t]") && enabled != "no" && !done) {
        print "Types: deb"; print "Suites: " suite; print "Components: " components
        for (i = 1; i <= n; i++) print lines[i]
        done = 1
      }
      n = 0; types = suites = enabled = ""; field = "kept"
    }
    /^[ \t]*$/ { flush(); next }
    /^[ \t]/ {
      if (field == "suites") suites = suites " " $0
      else if (field == "kept") lines[++n] = $0
      next
    }
    {
      low = tolower($0); field = "dropped"
      value = $0; sub(/^[^:]*:[ \t]*/, "", value)
      if (low ~ /^types:/) types = value
      else if (low ~ /^suites:/) { suites = value; field = "suites" }
      else if (low ~ /^enabled:/) enabled = tolower(value)
      else if (low !~ /^components:/) { lines[++n] = $0; field = "kept" }
    }
    END { flush() }'
}

one_line() { # OWN SUITE COMPONENTS FILE…
  local own=$1 suite=$2 components=$3
  shift 3
  cat -- "$@" 2>/dev/null | awk -v own="$own" -v suite="$suite" -v components="$components" '
    $1 == "deb" {
      options = ""; rest = $0; sub(/^[ \t]*deb[ \t]+/, "", rest)
      if (rest ~ /^\[/) { options = rest; sub(/\].*/, "] ", options); sub(/^\[[^]]*\][ \t]*/, "", rest) }
      split(rest, field, /[ \t]+/)
      if (field[2] == own) { print "deb " options field[1] " " suite " " components; exit }
    }'
}

# keyrings_of SOURCE: prints the files that its Signed-By names.
keyrings_of() {
  printf '%s\n' "$1" | grep -ioE '(^signed-by:|signed-by=)[^] ]*( *[^] ]+)*' | sed -E 's/^[^:=]*[:=] *//' |
    tr -s ', ' '\n' | grep '^/' | sort -u || true
}
