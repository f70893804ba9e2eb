/** Runs the code interpreter's server for a test: a fake Jupyter kernel as `python3`, real workers, a small envd. */

import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Interpreter, startInterpreter } from "../../../interpreter/app.ts";
import { compileReseed } from "../../../scripts/lib/programs/node-module.ts";

const ROOT = join(import.meta.dirname, "../../..");
export const TOKEN = "sandbox-secret";

interface Line {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface RunOptions {
  readonly signal?: AbortSignal;
  readonly token?: string;
  readonly onTaken?: () => void;
}

export interface RunningInterpreter {
  readonly url: string;
  readonly home: string;
  /** The variables that envd answers with. */
  envs: Record<string, string>;
  /** As when the platform starts, resumes or copies the sandbox. An older envd writes no id of the execution. */
  continueAs(sandboxId: string, executionId?: string): void;
  /** The lines of one run. */
  run(body: object, options?: RunOptions): Promise<Line[]>;
  /** Resolves to the run when the context has taken it: it runs, or waits for those before it. */
  taken(body: object): Promise<{ readonly lines: Promise<Line[]> }>;
  /** Text of all output of one run, then names of errors. */
  text(body: object): Promise<string>;
  call(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: string }>;
  stop(): Promise<void>;
}

/** A directory with a `python3` that is the fake kernel. */
export function fakePython(directory: string): string {
  const bin = join(directory, "bin");
  mkdirSync(bin, { recursive: true });
  const kernel = join(ROOT, "test/support/interpreter/fake-kernel.ts");
  const loader = fileURLToPath(import.meta.resolve("tsx"));
  writeFileSync(join(bin, "python3"), `#!/bin/sh\nexec '${process.execPath}' --import '${loader}' '${kernel}' "$@"\n`);
  chmodSync(join(bin, "python3"), 0o755);
  return bin;
}

export async function runInterpreter(): Promise<RunningInterpreter> {
  // Sockets have paths of at most 107 bytes.
  const directory = mkdtempSync(join(tmpdir(), "ci-"));
  const home = join(directory, "home");
  mkdirSync(home);
  await build({
    entryPoints: [join(ROOT, "interpreter/kernels/workers/javascript/main.ts")],
    outfile: join(directory, "javascript.js"),
    bundle: true,
    platform: "node",
    format: "cjs",
    logLevel: "error",
  });
  compileReseed(directory);
  copyFileSync(join(ROOT, "interpreter/kernels/workers/java/Worker.java"), join(directory, "Worker.java"));
  const state = { envs: {} as Record<string, string> };
  const envd = createServer((request, response) => {
    const allowed = request.url === "/envs" && request.headers["x-access-token"] === TOKEN;
    response.writeHead(allowed ? 200 : 401).end(JSON.stringify(state.envs));
  });
  await new Promise<void>((resolve) => envd.listen(0, "127.0.0.1", resolve));
  const [sandboxFile, executionFile] = [join(directory, "sandbox-id"), join(directory, "execution-id")];
  const { PATH = "" } = process.env;
  const interpreter: Interpreter = await startInterpreter({
    port: 0,
    envd: `http://127.0.0.1:${(envd.address() as AddressInfo).port}`,
    identityFiles: [sandboxFile, executionFile],
    runtime: join(directory, "run"),
    home,
    folder: directory,
    node: process.execPath,
    environment: { PATH: `${fakePython(directory)}:${PATH}`, HOME: home, STARTED_WITH: "it" },
    log: () => undefined,
  });
  const url = `http://127.0.0.1:${interpreter.port}`;
  const headers = { "content-type": "application/json" };

  const run: RunningInterpreter["run"] = async (body, { signal, token = TOKEN, onTaken } = {}) => {
    const response = await fetch(`${url}/execute`, {
      method: "POST",
      headers: { ...headers, "x-access-token": token },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    // The server sends the headers when it puts the run into the context's queue.
    onTaken?.();
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${text}`);
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  };
  return {
    url,
    home,
    get envs() {
      return state.envs;
    },
    set envs(envs) {
      state.envs = envs;
    },
    continueAs: (sandboxId, executionId) => {
      writeFileSync(sandboxFile, sandboxId);
      if (executionId !== undefined) writeFileSync(executionFile, `${executionId}\n`);
    },
    run,
    taken(body) {
      return new Promise((resolve, reject) => {
        const lines = run(body, { onTaken: () => resolve({ lines }) });
        lines.catch(reject);
      });
    },
    text: async (body) =>
      (await run(body)).map((line) => line["text"] ?? (line.type === "error" ? line["name"] : "")).join(""),
    call: async (method, path, body) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${url}${path}`, { method, headers, ...sent });
      return { status: response.status, body: await response.text() };
    },
    stop: async () => {
      await interpreter.stop();
      envd.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
