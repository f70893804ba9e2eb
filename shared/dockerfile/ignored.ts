/** Which files of a build's folder its .dockerignore leaves out. Pure. */

import ignore from "ignore";

/** Whether a path of the folder, with `/` between names and at the end of a directory's, is left out. */
export type Ignores = (path: string) => boolean;

/** Patterns of .dockerignore begin at the folder, those that the library reads may match anywhere. */
export function ignoredBy(text: string): Ignores {
  const patterns = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const isKept = line.startsWith("!");
      const pattern = (isKept ? line.slice(1) : line).trim().replace(/^\.?\/+/, "");
      return `${isKept ? "!" : ""}/${pattern}`;
    });
  const rules = ignore({ allowRelativePaths: true }).add(patterns);
  return (path) => path !== "" && rules.ignores(path);
}
