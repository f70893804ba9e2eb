/** Compiles the native file that the code interpreter's JavaScript worker has beside it. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";

const SOURCES = join(import.meta.dirname, "../../../interpreter/kernels/workers/javascript");

/** Writes `reseed.node`. It uses no library, so that it runs in every image with Node, whatever this machine has. */
export function compileReseed(directory: string): void {
  const options = ["-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden", "-Os", "-s", "-Wall"];
  execFileSync("cc", [...options, "-o", join(directory, "reseed.node"), "reseed.c"], {
    cwd: SOURCES,
    stdio: "inherit",
  });
}
