/** Which entries of a directory the page shows, and which of them it opens. Pure. */

import { MOST_IMAGE_BYTES } from "./image.ts";
import { MOST_TEXT_BYTES } from "./text.ts";

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

/** By the name alone: what the file is shows when it is read. */
const NAMED_IMAGE = /\.(png|jpe?g|gif|webp)$/i;

/** Whether the page reads the file whole, to show it as text or as a picture. */
export function isOpened({ name, size = 0 }: Entry): boolean {
  return Number(size) <= (NAMED_IMAGE.test(name) ? MOST_IMAGE_BYTES : MOST_TEXT_BYTES);
}

export function inside(directory: string, name: string): string {
  return `${directory.replace(/\/$/, "")}/${name}`;
}

export function parentOf(path: string): string {
  return path.replace(/\/[^/]*\/?$/, "") || "/";
}
