/** Compares the names of fields as people misspell them: in case, with underscores, by a letter. Pure. */

/** Names that differ in case and punctuation alone are the same word: `denyOut`, `deny_out`, `Deny-Out`. */
export function word(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
}

/** Whether the name has several words, so that a caller who sends it elsewhere can mean nothing else. */
export function hasSeveralWords(name: string): boolean {
  return /[a-z0-9][A-Z]|[a-zA-Z0-9]_[a-zA-Z0-9]/.test(name);
}

/** Names longer than this are no misspelling of a field. */
const LONGEST = 64;

/** The known name with the fewest edits, at most a third of its letters; undefined: none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const given = word(name);
  if (given === "" || given.length > LONGEST) return undefined;
  const [best] = known
    .map((each) => ({ each, distance: edits(given, word(each)) }))
    .filter(({ each, distance }) => distance <= Math.floor(word(each).length / 3))
    .sort((a, b) => a.distance - b.distance);
  return best?.each;
}

/** Shorter names are one letter away from too many others: `count` and `mount`. */
const SHORTEST = 7;

/** The known name of which this one is a slip of one letter, which is not the first: `gpuCount` is another word than `cpuCount`. */
export function slipOf(name: string, known: readonly string[]): string | undefined {
  const given = word(name);
  if (given.length > LONGEST) return undefined;
  return known.find((each) => {
    const meant = word(each);
    return meant.length >= SHORTEST && meant[0] === given[0] && edits(given, meant) === 1;
  });
}

/** Letters to add, remove, replace, or exchange with their neighbour (optimal string alignment). */
function edits(from: string, to: string): number {
  let before: readonly number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const differs = from[row - 1] === to[column - 1] ? 0 : 1;
      const least = Math.min(at(above, column) + 1, at(current, column - 1) + 1, at(above, column - 1) + differs);
      const exchanged = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(exchanged ? Math.min(least, at(before, column - 2) + 1) : least);
    }
    before = above;
    above = current;
  }
  return at(above, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
