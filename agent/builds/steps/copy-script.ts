/** The part of a COPY step that runs in the image's shell, and how its source and destination are read. */

import { posix } from "node:path";
import { namesDirectory } from "../../../shared/dockerfile/sources.ts";

/** Removes the directory of a COPY step, also after a failure. */
export const REMOVE_SCRIPT = `rm -rf "$1"`;

/** Splits a source at its first wildcard; `pattern` is the whole of a source that has one. Pure. */
export function splitSource(source: string): { readonly from: string; readonly pattern: string | undefined } {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  const wildcard = parts.findIndex((part) => /[*?[\]{}!]/.test(part));
  const kept = wildcard < 0 ? parts : parts.slice(0, wildcard);
  return { from: kept.length === 0 ? "." : kept.join("/"), pattern: wildcard < 0 ? undefined : parts.join("/") };
}

/** Where the files go: absolute, with a slash at the end of what is a directory by its name. Pure. */
export function targetOf(workdir: string, destination: string): string {
  return posix.resolve(workdir, destination) + (namesDirectory(destination) ? "/" : "");
}
