/** Where the egress process is, the port it listens on, and the user that it runs as. */

import { randomInt } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Log } from "../../shared/program/log.ts";
import type { RunCommand } from "../host/command.ts";
import { nativeProgram } from "../host/native-program.ts";

/** A C program that makes the sockets that only root can make, gives up root, and becomes the egress process. */
const LAUNCHER = "egress/launch/svc-egress";

/** No user of the machine, of Docker or of a container's image has such a number, and no file belongs to one. */
const FIRST_USER = 1_879_048_192;
const LAST_USER = 2_147_483_646;

export interface EgressLaunch {
  /** Address at which sandboxes reach it: the resolver on `dnsPort`, redirected connections on `port`. */
  readonly gateway: string;
  readonly port: number;
  readonly dnsPort: number;
  /** Undefined: a random number, so that no process in a sandbox and no other platform has the same user. */
  readonly user?: number;
}

/** The command that starts it: as it was built, or of this checkout. */
export async function egressCommand(run: RunCommand, workDir: string, launch: EgressLaunch): Promise<string[]> {
  const launcher = await nativeProgram(run, LAUNCHER, workDir, ["filter"]);
  const { gateway, port, dnsPort, user = randomInt(FIRST_USER, LAST_USER) } = launch;
  return [launcher, gateway, `${port}`, `${dnsPort}`, `${user}`, process.execPath, ...(await program(run, workDir))];
}

async function program(run: RunCommand, workDir: string): Promise<string[]> {
  const here = fileURLToPath(import.meta.url);
  if (!here.endsWith(".ts")) return [...process.execArgv, join(dirname(here), "egress.js")];
  // Tests and developers run from the sources. They are bundled, because the egress user may not read this checkout.
  const root = join(dirname(here), "../..");
  const file = join(workDir, "egress.cjs");
  const options = ["--bundle", "--platform=node", "--target=node24", "--log-level=error", `--outfile=${file}`];
  await run(join(root, "node_modules/.bin/esbuild"), [join(root, "agent/egress/main.ts"), ...options]);
  // The egress user opens the bundle by its path.
  await chmod(workDir, 0o711);
  await chmod(file, 0o644);
  return [file];
}

/** PEM of `NODE_EXTRA_CA_CERTS`, which may be a file that only root reads. Empty: there is none. */
export async function extraCertificates(path: string | undefined, log: Log): Promise<string> {
  if (path === undefined || path === "") return "";
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    log.warn(
      { err: error, path },
      "NODE_EXTRA_CA_CERTS cannot be read: hosts with header rules are verified without it",
    );
    return "";
  }
}

/** The wanted port, else the last one if it is still free, else a free one. Stores the choice in the file. */
export async function choosePort(wanted: number, path: string): Promise<number> {
  if (wanted !== 0) return wanted;
  const last = Number(await readFile(path, "utf8").catch(() => "0"));
  const port = await free(last).catch(() => free(0));
  if (port !== last) await writeFile(path, `${port}\n`);
  return port;
}

// Tries the port on every address, because the address that will use it may not exist yet.
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
