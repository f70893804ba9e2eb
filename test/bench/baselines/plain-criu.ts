/** CRIU as the baselines use it: the installed program with its libraries and its preload, without its confinement. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const INSTALLED = "/opt/svc/bin/criu";

/**
 * Writes the program below `home` and returns a PATH on which it is the first `criu`. The confinement knows only the
 * directories of sandboxes; containers of runc's and Docker's own are elsewhere.
 */
export async function plainCriu(home: string): Promise<string> {
  const lines = (await readFile(INSTALLED, "utf8")).split("\n").filter((line) => !line.startsWith("case "));
  await mkdir(join(home, "bin"), { recursive: true });
  await writeFile(join(home, "bin/criu"), lines.join("\n"), { mode: 0o755 });
  return `${join(home, "bin")}:/opt/svc/bin:${process.env.PATH ?? ""}`;
}
