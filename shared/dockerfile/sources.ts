/** Which files of a folder the source of a COPY means, as Docker reads it, and under which names they are sent. Pure. */

import { pieceOf, wholly } from "./patterns.ts";

/** The source cannot be copied; the message says why. */
export class SourceError extends Error {}

export interface Source {
  /** The names before the first wildcard, joined by `/`; empty: the folder itself. */
  readonly start: string;
  /** What the names below `start` match, one after the other; none: a source without a wildcard. */
  readonly patterns: readonly RegExp[];
  /** The names before the first one that the platform takes for a wildcard: it looks for the matches there. */
  readonly prefix: string;
}

/** @throws {SourceError} */
export function readSource(source: string): Source {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new SourceError(`COPY ${source}: a source must not leave the folder`);
  const before = (sign: RegExp) => {
    const at = parts.findIndex((part) => sign.test(part));
    return at < 0 ? parts : parts.slice(0, at);
  };
  const start = before(/[*?[]/);
  return {
    start: start.join("/"),
    patterns: parts.slice(start.length).map((part) => patternOf(part, source)),
    prefix: before(/[*?[\]{}!]/).join("/"),
  };
}

/** The name under which what is at the path is sent; undefined: the source does not mean it. */
export function sentAs(path: string, isDirectory: boolean, source: Source): string | undefined {
  const { patterns, prefix } = source;
  const below = namesBelow(path, source);
  if (below === undefined || below.length < patterns.length || !mayHold(path, source)) return undefined;
  if (patterns.length === 0) return path;
  const inside = below.slice(patterns.length);
  // Of a directory that matches, Docker copies what is in it.
  if (inside.length === 0 && isDirectory) return undefined;
  const name = inside.length === 0 ? (below.at(-1) ?? "") : inside.join("/");
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** Whether the source means the path, or may mean what is below it. */
export function mayHold(path: string, source: Source): boolean {
  const below = namesBelow(path, source);
  return below?.every((name, at) => source.patterns[at]?.test(name) !== false) === true;
}

/** Whether the path is what the source names, or one of its matches, and not only below it. */
export function isNamed(path: string, source: Source): boolean {
  return namesBelow(path, source)?.length === source.patterns.length;
}

/** Whether the destination is a directory, whatever it is called: several matches, or one that is a directory. */
export function needsDirectory(paths: readonly string[], source: Source): boolean {
  if (source.patterns.length === 0) return false;
  const all = paths.map((path) => namesBelow(path, source) ?? []);
  const matches = new Set(all.map((names) => names.slice(0, source.patterns.length).join("/")));
  return matches.size > 1 || all.some((names) => names.length > source.patterns.length);
}

/** Whether a destination says by itself that it is a directory: `dir/`, `dir/.` and `.`, as in Docker. */
export function namesDirectory(destination: string): boolean {
  return /(^|\/)\.?$/.test(destination);
}

/** The names of the path after those of `start`; undefined: it is not below. */
function namesBelow(path: string, { start }: Source): readonly string[] | undefined {
  if (path === start) return [];
  if (start !== "" && !path.startsWith(`${start}/`)) return undefined;
  return path.slice(start === "" ? 0 : start.length + 1).split("/");
}

function patternOf(pattern: string, source: string): RegExp {
  const wrong = () => new SourceError(`COPY ${source}: '${pattern}' is not a pattern of names`);
  let text = "";
  for (let rest = pattern; rest !== ""; ) {
    const piece = pieceOf(rest);
    if (piece === undefined) throw wrong();
    text += piece.text;
    rest = rest.slice(piece.written.length);
  }
  const whole = wholly(text);
  if (whole === undefined) throw wrong();
  return whole;
}
