/** Holds a file with a lease: a program that opens the file for writing waits, for the kernel's 45 s at most. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";

/** Compiles the program that `holdFile` runs and resolves to its path. */
export async function buildLease(directory: string): Promise<string> {
  const program = join(directory, "lease");
  await promisify(execFile)("cc", ["-Os", "-Wall", "-o", program, join(import.meta.dirname, "lease.c")]);
  return program;
}

/** Resolves to the function that releases the file, once the file is held. */
export async function holdFile(lease: string, path: string): Promise<() => Promise<void>> {
  const child = spawn(lease, [path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return async () => {
    const gone = once(child, "exit");
    child.stdin.end();
    await gone;
  };
}
