/** Shell that creates a user of an image, with its home. Pure. */

/**
 * For a USER step, with the name as its first argument: creates the user and its home. As in Docker, the home that a user of
 * the image has stays as it is: that of `daemon` is /usr/sbin, that of `www-data` holds what other steps have copied.
 */
export const ADD_USER_SCRIPT = `set -e
umask 022
name=$1
case "$name" in *[!A-Za-z0-9._-]*|-*|'') echo "'$name' is not the name of a user" >&2; exit 1;; esac
while IFS=: read -r found _ _ _ _ home _ || [ -n "$found" ]; do
  if [ "$found" = "$name" ] && [ -n "$home" ] && [ -e "$home" ]; then exit 0; fi
done </etc/passwd
${addUser('"$name"', 1000)}`;

/**
 * Edits the files itself: useradd, adduser and addgroup differ everywhere, and small images have none of them. Ends their last
 * line, which images made by hand leave open.
 */
export function addUser(name: string, uid: number): string {
  return `if ! grep -q "^"${name}":" /etc/passwd; then
  uid=${uid}
  for file in /etc/passwd /etc/group /etc/shadow; do
    if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then echo >>"$file"; fi
  done
  while grep -Eq "^[^:]*:[^:]*:$uid:" /etc/passwd || grep -Eq "^[^:]*:[^:]*:$uid:" /etc/group; do uid=$((uid + 1)); done
  gid=$uid
  if grep -q "^"${name}":" /etc/group; then gid=$(sed -n "s/^"${name}":[^:]*:\\([0-9]*\\):.*/\\1/p" /etc/group | head -n 1)
  else echo ${name}:x:$uid: >>/etc/group; fi
  echo ${name}:x:$uid:$gid::/home/${name}:/bin/bash >>/etc/passwd
  if [ -e /etc/shadow ]; then echo ${name}:'!':19000:0:99999:7::: >>/etc/shadow; fi
fi
home=$(sed -n "s/^"${name}":[^:]*:[^:]*:[^:]*:[^:]*:\\([^:]*\\):.*/\\1/p" /etc/passwd | head -n 1)
ids=$(sed -n "s/^"${name}":[^:]*:\\([0-9]*\\):\\([0-9]*\\):.*/\\1:\\2/p" /etc/passwd | head -n 1)
if [ -n "$home" ] && [ "$home" != / ] && [ ! -e "$home/.bashrc" ]; then
  mkdir -p "$home"
  [ ! -d /etc/skel ] || cp -R /etc/skel/. "$home/"
  for file in .bashrc .profile; do [ -e "$home/$file" ] || : >"$home/$file"; done
  chown -R "$ids" "$home"
fi`;
}
