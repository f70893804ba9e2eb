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
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const isKept = line.startsWith("!");
      const pattern = (isKept ? line.slice(1) : line)
        .trim()
        .replace(/^\.?\/+/, "")
        .replace(/\/+$/, "");
      return { isKept, ignores: ignore({ allowRelativePaths: true }).add(`/${pattern}`) };
    });
  return (path) => {
    if (path === "") return false;
    let isIgnored = false;
    for (const { isKept, ignores } of rules) if (isIgnored === isKept && ignores.ignores(path)) isIgnored = !isKept;
    return isIgnored;
  };
}
