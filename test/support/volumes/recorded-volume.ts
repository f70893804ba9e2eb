/** Runs a client's program in a process of its own, with the variables that a test gives it and no others. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const program = fileURLToPath(new URL("recorded-volume.mjs", import.meta.url));

export interface Recorded {
  /** What the program read of the volume through the API, and what a sandbox that mounts it read. */
  readonly read?: string;
  readonly mounted?: string;
  readonly error?: string;
  /** Every host and port to which the process opened a connection. */
  readonly hosts: readonly string[];
}

export async function recordedVolume(
  variables: Readonly<Record<string, string>>,
  options: { readonly mount?: boolean } = {},
): Promise<Recorded> {
  const { stdout } = await run(process.execPath, [program, ...(options.mount === true ? ["--mount"] : [])], {
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...variables },
    timeout: 60_000,
  });
  return JSON.parse(stdout) as Recorded;
}
