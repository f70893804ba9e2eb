/** Wires the server: languages, contexts, HTTP. It listens when both default contexts exist. */

import { mkdirSync, rmSync, statSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Contexts } from "./contexts/contexts.ts";
import { sandboxAround } from "./contexts/sandbox.ts";
import { createHttpServer } from "./http/server.ts";
import { languages } from "./kernels/languages.ts";
import { endLeftovers } from "./supervise/leftovers.ts";

export interface InterpreterConfig {
  /** 0 takes any free port. */
  readonly port: number;
  /** Address of envd, `http://localhost:49983`. */
  readonly envd: string;
  /** The files that envd writes at every start, resume and fork. An older envd lacks some of them. */
  readonly identityFiles: readonly string[];
  /** A directory for sockets and files of kernels, emptied at the start. */
  readonly runtime: string;
  /** Working directory of contexts that name none. */
  readonly home: string;
  /** The folder that holds `javascript.js`, `Worker.java` and `python/`. */
  readonly folder: string;
  /** The program that runs the JavaScript worker. */
  readonly node: string;
  /** Of the kernels. */
  readonly environment: Readonly<Record<string, string>>;
  /** Takes one line for the log, which never has code or values. */
  readonly log: (level: "info" | "error", message: string) => void;
}

export interface Interpreter {
  readonly port: number;
  stop(): Promise<void>;
}

/** The contexts that exist from the start, in this order. */
const DEFAULTS = ["python", "javascript"];

/** @throws Error when a default context cannot be made */
export async function startInterpreter(config: InterpreterConfig): Promise<Interpreter> {
  const { runtime, environment, folder, log } = config;
  const ended = endLeftovers(runtime);
  if (ended > 0) log("info", `ended ${ended} kernels of an earlier server`);
  rmSync(runtime, { recursive: true, force: true });
  mkdirSync(runtime, { recursive: true, mode: 0o700 });
  const contexts = new Contexts({
    languages: languages({
      node: config.node,
      javascript: join(folder, "javascript.js"),
      java: join(folder, "Worker.java"),
      pythonFolder: join(folder, "python"),
      path: environment["PATH"] ?? "",
    }),
    sandbox: sandboxAround(config.envd, config.identityFiles),
    home: config.home,
    launch: (cwd) => ({ cwd, environment, runtime }),
    isDirectory: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true,
  });
  for (const language of DEFAULTS) await contexts.default(language);
  const server = createHttpServer(contexts, (error) => {
    log("error", `a request failed: ${error instanceof Error ? error.name : "unknown"}`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(config.port, "0.0.0.0", resolve);
  });
  const { port } = server.address() as AddressInfo;
  log("info", `the code interpreter listens on port ${port}`);
  return {
    port,
    stop: async () => {
      server.close();
      await contexts.stop();
      server.closeAllConnections();
      rmSync(runtime, { recursive: true, force: true });
    },
  };
}
