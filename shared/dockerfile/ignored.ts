/** Which files of a build's folder its .dockerignore leaves out. Pure. */

import { isOtherText, OTHER_TEXT } from "./encoding.ts";
import { type Piece, pieceOf, wholly } from "./patterns.ts";

/** Whether a path of the folder, with `/` between names and at the end of a directory's, is left out. */
export type Ignores = (path: string) => boolean;

/** A line is no pattern, and may name what must not be sent; the message says which one. */
export class IgnoreError extends Error {}

/**
 * In Docker the last pattern that matches the path or a directory above it decides: what an ignored directory holds can be taken back.
 * @throws {IgnoreError}
 */
export function ignoredBy(text: string): Ignores {
  if (isOtherText(text)) throw new IgnoreError(`.dockerignore ${OTHER_TEXT}`);
  const rules = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .flatMap((line) => {
      const isKept = line.startsWith("!");
      const pattern = cleaned(isKept ? line.slice(1).trim() : line);
      return pattern === "" ? [] : [{ isKept, matches: patternOf(pattern, line) }];
    });
  return (path) => {
    if (path === "") return false;
    const name = path.replace(/\/$/, "");
    let isIgnored = false;
    for (const { isKept, matches } of rules) if (isIgnored === isKept && matches.test(name)) isIgnored = !isKept;
    return isIgnored;
  };
}

/** The pattern without what leads nowhere: `/` around it, `.`, and names that a `..` takes back. Empty: no file can match it. */
function cleaned(pattern: string): string {
  const names: string[] = [];
  for (const name of pattern.split("/")) {
    if (name === ".." && names.length === 0 && !pattern.startsWith("/")) return "";
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names.join("/");
}

/** Matches what the pattern matches, and what is below it. */
function patternOf(pattern: string, line: string): RegExp {
  const wrong = () => new IgnoreError(`.dockerignore: '${line}' is not a pattern: write \\[ for a plain [`);
  let text = "";
  for (let rest = pattern; rest !== ""; ) {
    const directories = directoriesOf(rest, rest === pattern);
    const piece = directories ?? pieceOf(rest);
    if (piece === undefined) throw wrong();
    text += piece.text;
    rest = rest.slice(piece.written.length);
  }
  const whole = wholly(`(?:${text})(?:/.*)?`);
  if (whole === undefined) throw wrong();
  return whole;
}

/**
 * Two stars are any number of directories, or at the end anything. Where the whole pattern begins with them and has no other
 * wildcard, they are also the beginning of a name.
 */
function directoriesOf(rest: string, isWhole: boolean): Piece | undefined {
  const [written] = /^\*\*\/?/.exec(rest) ?? [];
  if (written === undefined) return undefined;
  const isPlain = isWhole && written === "**" && !/[*?[\]\\]/.test(rest.slice(2));
  return { written, text: isPlain || rest === written ? ".*" : "(?:.*/)?" };
}
