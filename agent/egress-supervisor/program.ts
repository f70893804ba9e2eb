/** Where the egress process is, and the port it listens on. */

import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunCommand } from "../host/command.ts";
import { nativeProgram } from "../host/native-program.ts";

/** Makes the socket that only the kernel's TPROXY can use, and becomes the program. */
const LAUNCHER = "egress/svc-transparent";

/** The program with its arguments, without the launcher's: as it was built, or of this checkout. */
export async function egressProgram(
  run: RunCommand,
  workDir: string,
): Promise<{ launcher: string; program: string[] }> {
  const here = fileURLToPath(import.meta.url);
  // From the sources, as tests and people who work on it do: this program's own way to load TypeScript.
  const main = join(dirname(here), here.endsWith(".ts") ? "../egress/main.ts" : "egress.js");
  const launcher = await nativeProgram(run, LAUNCHER, workDir);
  return { launcher, program: [process.execPath, ...process.execArgv, main] };
}

/** The wanted one, else the one of last time while it is free, else a free one; remembered in the file. */
export async function choosePort(wanted: number, path: string): Promise<number> {
  if (wanted !== 0) return wanted;
  const last = Number(await readFile(path, "utf8").catch(() => "0"));
  const port = await free(last).catch(() => free(0));
  if (port !== last) await writeFile(path, `${port}\n`);
  return port;
}

// On every address, although it is used on one that may not be there yet.
function free(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(port, "0.0.0.0");
    server.once("error", reject);
    server.once("listening", () => {
      const bound = server.address();
      server.close(() => resolve(typeof bound === "object" && bound !== null ? bound.port : 0));
    });
  });
}
