/** Small files of one program that only its user reads, each replaced in one step that survives a power cut. */

import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Undefined: there is no such file. */
export function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the file's directory where it is not there, and closes it to others. */
export function replaceFile(path: string, text: string): void {
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // The directory may be of another umask, or of a copy.
  chmodSync(directory, 0o700);
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600, flush: true });
  renameSync(draft, path);
  const opened = openSync(directory, "r");
  fsyncSync(opened);
  closeSync(opened);
}
