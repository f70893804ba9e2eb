/** Pure: file modes as clients of the public protocol expect them, written the way Go writes them. */

const FILE_TYPE = 0o170000;

/** Type letters by the type bits of a Unix mode. Regular files have none. */
const TYPE_LETTERS: ReadonlyMap<number, string> = new Map([
  [0o040000, "d"],
  [0o120000, "L"],
  [0o060000, "D"],
  [0o020000, "Dc"],
  [0o010000, "p"],
  [0o140000, "S"],
]);

/** `-rw-r--r--`, `drwxr-xr-x`, `Lrwxrwxrwx`, `dtrwxrwxrwx` (sticky), `urwxr-xr-x` (set-uid). */
export function permissionString(mode: number): string {
  const type = TYPE_LETTERS.get(mode & FILE_TYPE) ?? "";
  // Go prints "D" before the pipe and socket letters, then u, g, c, t.
  const device = type === "Dc" ? "D" : type;
  const special = (mode & 0o4000 ? "u" : "") + (mode & 0o2000 ? "g" : "") + (type === "Dc" ? "c" : "");
  const letters = device + special + (mode & 0o1000 ? "t" : "");
  let bits = "";
  for (let shift = 8; shift >= 0; shift -= 1) bits += mode & (1 << shift) ? "rwx"[(8 - shift) % 3] : "-";
  return (letters === "" ? "-" : letters) + bits;
}

/** Only the permission bits: 0o644 for `-rw-r--r--`. */
export function permissionBits(mode: number): number {
  return mode & 0o777;
}
