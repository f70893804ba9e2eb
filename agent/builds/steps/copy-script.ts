/**
 * The script of a COPY step, run as root inside the container once the archive is there.
 * Its arguments, which are never part of the script's text: the directory with `archive.tar`, the part of the source up
 * to its first wildcard, whether there is one, destination (absolute, with its trailing slash), owner, mode.
 */

export const COPY_SCRIPT = `set -e
work=$1 from=$2 wild=$3 destination=$4 owner=$5 mode=$6
command -v tar >/dev/null 2>&1 || { echo "the image has no tar, which COPY needs" >&2; exit 1; }
mkdir "$work/files"
tar -xpf "$work/archive.tar" -C "$work/files"
rm -f "$work/archive.tar"
source=$work/files/$from
if [ ! -e "$source" ] && [ ! -L "$source" ]; then echo "no files match the source" >&2; exit 1; fi

one=
if [ "$wild" = yes ]; then
  count=0
  for entry in "$source"/* "$source"/.[!.]* "$source"/..?*; do
    { [ -e "$entry" ] || [ -L "$entry" ]; } || continue
    count=$((count + 1)); found=$entry
  done
  if [ "$count" = 0 ]; then echo "no files match the source" >&2; exit 1; fi
  if [ "$count" = 1 ] && { [ -L "$found" ] || [ ! -d "$found" ]; }; then one=$found; fi
elif [ -L "$source" ] || [ ! -d "$source" ]; then one=$source; fi

# Before anything is where others reach it. A change of owner takes setuid away, so root's files keep theirs.
if [ "$owner" != root ] && [ "$owner" != 0 ]; then
  ids=$(sed -n "s/^$owner:[^:]*:\\([0-9]*\\):\\([0-9]*\\):.*/\\1:\\2/p" /etc/passwd | head -n 1)
  case "$owner" in *[!0-9]*) ;; *) [ -n "$ids" ] || ids=$owner:$owner;; esac
  [ -n "$ids" ] || { echo "invalid username: '$owner'" >&2; exit 1; }
else ids=0:0; fi
[ "$ids" = 0:0 ] || chown -hR "$ids" "$work/files"
if [ -n "$mode" ]; then
  if [ -z "$one" ]; then chmod -R "$mode" "$source"; elif [ ! -L "$one" ]; then chmod "$mode" "$one"; fi
fi

make() { # a directory and its missing parents; what is made is the owner's
  [ ! -d "$1" ] || return 0
  make "$(dirname "$1")"
  mkdir "$1"
  chown "$ids" "$1"
}
if [ -n "$one" ]; then
  case "$destination" in
    */) make "\${destination%/}" ;;
    *) make "$(dirname "$destination")" ;;
  esac
  cp -a "$one" "$destination"
else
  destination=\${destination%/}; [ -n "$destination" ] || destination=/
  make "$destination"
  # Directories that are there already stay as they are; only what is new gets the archive's modes and owner.
  if command -v find >/dev/null 2>&1 && command -v stat >/dev/null 2>&1; then
    (cd "$source" && find . -type d ! -name . -exec sh -c 'top=$1; shift
      for part; do there=$top/$part
        [ ! -d "$there" ] || { chown "$(stat -Lc %u:%g "$there")" "$part"; chmod "$(stat -Lc %a "$there")" "$part"; }
      done' - "$destination" {} +)
  fi
  for entry in "$source"/* "$source"/.[!.]* "$source"/..?*; do
    { [ -e "$entry" ] || [ -L "$entry" ]; } || continue
    cp -a "$entry" "$destination/"
  done
fi
rm -rf "$work"`;

/** Splits a source at its first wildcard. Pure. */
export function splitSource(source: string): { readonly from: string; readonly wild: boolean } {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  const wildcard = parts.findIndex((part) => /[*?[\]{}!]/.test(part));
  const kept = wildcard < 0 ? parts : parts.slice(0, wildcard);
  return { from: kept.length === 0 ? "." : kept.join("/"), wild: wildcard >= 0 };
}
