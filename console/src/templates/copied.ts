/** Which files of a folder a COPY step means. Pure. */

import type { Ignores } from "../../../shared/dockerfile/ignored.ts";

interface Placed {
  /** From the folder on, with `/` between names. */
  readonly path: string;
}

/** The files of a source, which may have wildcards: the platform picks what they mean from those below the names before. */
export function filesUnder<F extends Placed>(files: readonly F[], source: string, isIgnored: Ignores): readonly F[] {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new Error(`COPY ${source}: a source must not leave the folder`);
  if (files.length === 0) throw new Error(`COPY ${source}: choose the folder that has it`);
  const wildcard = parts.findIndex((part) => /[*?[\]]/.test(part));
  const start = (wildcard < 0 ? parts : parts.slice(0, wildcard)).join("/");
  const below = files.filter(({ path }) => start === "" || path === start || path.startsWith(`${start}/`));
  if (below.length === 0) throw new Error(`COPY ${source}: ${start} is not in the folder, or has no file`);
  const left = below.filter(({ path }) => !isIgnored(path) && !parents(path).some((each) => isIgnored(`${each}/`)));
  if (left.length === 0 && start !== "") throw new Error(`COPY ${source}: .dockerignore leaves nothing of it`);
  return left.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The directories that a path is in, the outermost first. */
export function parents(path: string): string[] {
  const names = path.split("/");
  return names.slice(0, -1).map((_name, index) => names.slice(0, index + 1).join("/"));
}
