# Finds the Debian mirror that this machine uses, from its apt sources in either format, so that these
# scripts contain no host name.
# shellcheck shell=bash

# shellcheck disable=SC1091
codename() { (. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}"); }

# apt_source_for OWN SUITE COMPONENTS: a source for SUITE at the address where this machine gets its
# suite OWN, with every option (Signed-By and so on) of the original kept. Prints the format
# ("sources" or "list") on the first line and the source after it; fails when OWN has no source.
# Docker, HashiCorp, Microsoft and others name their suites like the distribution's: the distribution's own source comes first,
# whatever file it is in. It may have another name there (`stable`), which counts where no source has OWN.
apt_source_for() {
  local own=$1 pocket='' accept name
  shift
  case $own in *-*) pocket=-${own#*-} ;; esac
  for accept in distribution main; do
    source_of "$own" "$@" && return 0
  done
  accept=alias
  for name in stable oldstable testing unstable sid; do
    source_of "$name$pocket" "$@" && return 0
  done
  accept=any
  source_of "$own" "$@"
}

APT_SOURCES=/etc/apt

source_of() { # OWN SUITE COMPONENTS, of the kind $accept
  local found parts=$APT_SOURCES/sources.list.d format=sources
  found=$(deb822_stanza "$@" "$parts"/*.sources) || true
  if [ -z "$found" ]; then
    format=list
    found=$(one_line "$@" "$APT_SOURCES/sources.list" "$parts"/*.list) || true
  fi
  [ -n "$found" ] && printf '%s\n%s\n' "$format" "$found"
}

# Which sources count: `any`; those with the component main; those of the distribution, which no other key has signed; the same with
# the word debian in their address (`alias`), because browsers and others have a suite `stable`, too.
accepted='function accepted(components, keys, addresses) {
  if (accept == "any") return 1
  if ((" " components " ") !~ /[ \t]main[ \t]/) return 0
  if (accept == "main") return 1
  if (keys != "" && keys !~ /\/(debian|ubuntu)-archive-/) return 0
  return accept != "alias" || addresses ~ /debian/
}'

# Comments are dropped first: they may stand inside a stanza.
deb822_stanza() { # OWN SUITE COMPONENTS FILE…
  local own=$1 suite=$2 components=$3
  shift 3
  awk 'FNR == 1 { print "" } !/^#/' "$@" 2>/dev/null |
    awk -v own="$own" -v suite="$suite" -v components="$components" -v accept="${accept:-any}" "$accepted"'
    function flush(   i) {
      if (types ~ /(^|[ \t])deb([ \t]|$)/ && (" " suites " ") ~ ("[ \t]" own "[ \t]") && enabled != "no" && !done &&
        accepted(has["components"], has["signed-by"], has["uris"])) {
        print "Types: deb"; print "Suites: " suite; print "Components: " components
        for (i = 1; i <= n; i++) print lines[i]
        done = 1
      }
      n = 0; types = suites = enabled = ""; field = "kept"; split("", has)
    }
    /^[ \t]*$/ { flush(); next }
    /^[ \t]/ {
      has[name] = has[name] " " $0
      if (field == "suites") suites = suites " " $0
      else if (field == "kept") lines[++n] = $0
      next
    }
    {
      low = tolower($0); field = "dropped"
      value = $0; sub(/^[^:]*:[ \t]*/, "", value)
      name = low; sub(/[ \t]*:.*/, "", name); has[name] = value
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
  cat -- "$@" 2>/dev/null | awk -v own="$own" -v suite="$suite" -v components="$components" -v accept="${accept:-any}" "$accepted"'
    $1 == "deb" {
      options = ""; rest = $0; sub(/^[ \t]*deb[ \t]+/, "", rest)
      if (rest ~ /^\[/) { options = rest; sub(/\].*/, "] ", options); sub(/^\[[^]]*\][ \t]*/, "", rest) }
      n = split(rest, field, /[ \t]+/); has = ""; keys = tolower(options)
      for (i = 3; i <= n; i++) has = has " " field[i]
      if (!sub(/.*signed-by[ \t]*=[ \t]*/, "", keys)) keys = ""
      if (field[2] == own && accepted(has, keys, field[1])) { print "deb " options field[1] " " suite " " components; exit }
    }'
}

# keyrings_of SOURCE: prints the files that its Signed-By names.
keyrings_of() {
  printf '%s\n' "$1" | grep -ioE '(^signed-by:|signed-by=)[^] ]*( *[^] ]+)*' | sed -E 's/^[^:=]*[:=] *//' |
    tr -s ', ' '\n' | grep '^/' | sort -u || true
}
