/** File modes of COPY: in octal, or symbolic as chmod takes them. What BuildKit makes of them, with a umask of 0. Pure. */

const CLAUSE = "[ugoa]*(?:[-+=][rwxXstugo]*)+";
/** A mode such as `755`, `+x` or `u=rwX,go=rX`. */
export const FILE_MODE = `^(?:[0-7]{3,4}|${CLAUSE}(?:,${CLAUSE})*)$`;
export const LONGEST_FILE_MODE = 128;

const FILE_MODE_READ = new RegExp(FILE_MODE);
/** The bits that belong to each name, with those of set-user-ID and set-group-ID. */
const OF = { u: 0o4700, g: 0o2070, o: 0o0007 } as const;
const STICKY = 0o1000;

export function isFileMode(text: string): boolean {
  return text.length <= LONGEST_FILE_MODE && FILE_MODE_READ.test(text);
}

/**
 * The permission bits of a file that had others. As in BuildKit `X` asks for the bits that the file came with. As chmod and Docker's
 * documentation have it, and BuildKit's code does not, `X` counts behind `=` too: `u=rwX,go=rX` keeps directories open.
 */
export function modeAfter(mode: string, before: number, isDirectory: boolean): number {
  if (/^[0-7]+$/.test(mode)) return Number.parseInt(mode, 8);
  const executes = isDirectory || (before & 0o111) !== 0;
  let bits = before;
  for (const clause of mode.split(",")) {
    const [who = ""] = /^[ugoa]*/.exec(clause) ?? [];
    const reach = reachOf(who);
    for (const [, act, letters = ""] of clause.matchAll(/([-+=])([rwxXstugo]*)/g)) {
      const meant = Array.from(letters).reduce((all, letter) => all | bitsOf(letter, bits, executes), 0) & reach;
      if (act === "-") bits &= ~meant;
      else bits = (act === "=" ? bits & ~(reach & ~STICKY) : bits) | meant;
    }
  }
  return bits;
}

/**
 * The bits that a clause may change. A clause without a name, such as `+x`, is for all. Every clause may change the sticky bit but one
 * for others alone.
 */
function reachOf(who: string): number {
  if (who === "" || who.includes("a")) return 0o7777;
  const named = Array.from(who).reduce((all, one) => all | OF[one as keyof typeof OF], 0);
  return named === OF.o ? named : named | STICKY;
}

function bitsOf(letter: string, bits: number, executes: boolean): number {
  switch (letter) {
    case "r":
      return 0o444;
    case "w":
      return 0o222;
    case "x":
      return 0o111;
    case "X":
      return executes ? 0o111 : 0;
    case "s":
      return 0o6000;
    case "t":
      return STICKY;
    case "u":
      return ((bits >> 6) & 7) * 0o111;
    case "g":
      return ((bits >> 3) & 7) * 0o111;
    default:
      return (bits & 7) * 0o111;
  }
}
