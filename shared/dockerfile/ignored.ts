/** Which files of a build's folder its .dockerignore leaves out. Pure. */

import ignore from "ignore";

/** Whether a path of the folder, with `/` between names and at the end of a directory's, is left out. */
export type Ignores = (path: string) => boolean;

/**
 * Patterns of .dockerignore begin at the folder, those that the library reads may match anywhere. In Docker the last pattern that
 * matches the path or a directory above it decides, so each is asked alone: in git, what an ignored directory holds cannot be
 * taken back.
 */
export function ignoredBy(text: string): Ignores {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => {
      const isKept = line.startsWith("!");
      const pattern = cleaned(isKept ? line.slice(1).trim() : line);
      const ignores = ignore({ allowRelativePaths: true, ignoreCase: false });
      return { isKept, ignores: pattern === "" ? ignores : ignores.add(`/${pattern}`) };
    });
  return (path) => {
    if (path === "") return false;
    let isIgnored = false;
    for (const { isKept, ignores } of rules) if (isIgnored === isKept && ignores.ignores(path)) isIgnored = !isKept;
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
  return starred(names);
}

/**
 * Two stars that begin a name: in Docker those of the directories above it, and where the whole pattern begins with them and has
 * no other wildcard, also of the name's own beginning.
 */
function starred([first = "", ...more]: readonly string[]): string {
  const rest = more.map((name) => `/${name.replace(/^\*\*(?=[^*])/, "**/")}`).join("");
  if (!/^\*\*[^*]/.test(first)) return first + rest;
  return `**/${/[*?[\]\\]/.test(first.slice(2) + rest) ? "" : "*"}${first.slice(2)}${rest}`;
}
