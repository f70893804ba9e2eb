/** Which files of a folder a COPY step means. Pure. */

import type { Ignores } from "../../../shared/dockerfile/ignored.ts";
import { needsDirectory, readSource, sentAs } from "../../../shared/dockerfile/sources.ts";

interface Placed {
  /** With `/` between names: from the folder on, or in the archive. */
  readonly path: string;
}

/** What a source means. */
export interface Picked<F> {
  /** With their paths in the archive. */
  readonly files: readonly F[];
  readonly needsDirectory: boolean;
}

/** The files that a source means, which may have wildcards; those that match nothing mean none. */
export function filesUnder<F extends Placed>(files: readonly F[], source: string, isIgnored: Ignores): Picked<F> {
  const wanted = readSource(source);
  if (files.length === 0) throw new Error(`COPY ${source}: choose the folder that has it`);
  const { start, patterns } = wanted;
  const meant = files
    .map((file) => ({ file, name: sentAs(file.path, false, wanted) }))
    .filter(({ name }) => name !== undefined);
  if (meant.length === 0 && patterns.length === 0)
    throw new Error(`COPY ${source}: ${start} is not in the folder, or has no file`);
  const left = meant
    .filter(({ file }) => !isIgnored(file.path))
    .toSorted((a, b) => (a.file.path < b.file.path ? -1 : 1));
  if (left.length === 0 && patterns.length === 0 && start !== "")
    throw new Error(`COPY ${source}: .dockerignore leaves nothing of it`);
  // Of two matches with a file of one name, Docker keeps the later.
  const named = new Map(left.map(({ file, name = "" }) => [name, { ...file, path: name }]));
  const paths = left.map(({ file }) => file.path);
  return { files: [...named.values()], needsDirectory: needsDirectory(paths, wanted) };
}

/** The file that says what stays: as in Docker, one beside the Dockerfile that has its name before counts alone. */
export function ignoringOf<F extends Placed>(files: readonly F[]): F | undefined {
  const at = (name: string) => files.find(({ path }) => path === name);
  return at("Dockerfile.dockerignore") ?? at(".dockerignore");
}

/** The directories that a path is in, the outermost first. */
export function parents(path: string): string[] {
  const names = path.split("/");
  return names.slice(0, -1).map((_name, index) => names.slice(0, index + 1).join("/"));
}
