/** Which entries of a directory the page shows. Pure. */

export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly type?: string;
  /** A 64-bit number in JSON is a text. */
  readonly size?: string | number;
  readonly permissions?: string;
  readonly owner?: string;
  readonly modifiedTime?: string;
}

/** A program can make as many files as its disk takes, and a row for each would freeze the page. */
const MOST_ROWS = 1_000;
const names = new Intl.Collator();

export const isDirectory = ({ type }: Entry) => type === "FILE_TYPE_DIRECTORY";

/** Directories first, each by name. `left`: how many more there are. */
export function shownOf(all: readonly Entry[]): { readonly shown: readonly Entry[]; readonly left: number } {
  const sorted = all.toSorted(
    (a, b) => Number(isDirectory(b)) - Number(isDirectory(a)) || names.compare(a.name, b.name),
  );
  return { shown: sorted.slice(0, MOST_ROWS), left: Math.max(0, all.length - MOST_ROWS) };
}

export function inside(directory: string, name: string): string {
  return `${directory.replace(/\/$/, "")}/${name}`;
}

export function parentOf(path: string): string {
  return path.replace(/\/[^/]*\/?$/, "") || "/";
}
