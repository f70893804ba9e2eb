/** The built command `svc` as a process of its own, as a user starts it: built once for a file of tests. */

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";

const checkout = join(import.meta.dirname, "../../..");

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Running {
  /** What it has written so far. */
  readonly output: () => string;
  readonly errors: () => string;
  interrupt(): void;
  /** Reads no more of its output, as `head` does when it has seen enough. */
  stopReading(): void;
  /** It is killed when it takes as long as a test may. */
  readonly ended: Promise<Ended>;
}

interface Given {
  /** Beside the variables of the file. An undefined one is taken away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
}

export interface Svc {
  /** A directory of the file's own. */
  readonly folder: string;
  start(words: readonly string[], given?: Given): Running;
  run(words: readonly string[], given?: Given): Promise<Ended>;
  /** The output of a command that must succeed, without the line break at its end. */
  out(words: readonly string[], given?: Given): Promise<string>;
}

/** For tests that start several processes: on a busy machine each takes seconds. */
export const SLOW = { timeout: 240_000 };

const LONGEST_MS = 240_000;

/** @param variables of every call, asked at each */
export function builtSvc(variables: () => Readonly<Record<string, string>>): Svc {
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
    const tsx = join(checkout, "node_modules/tsx/dist/cli.mjs");
    await promisify(execFile)(process.execPath, [tsx, "scripts/build.ts", "--to", folder, "cli"], { cwd: checkout });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const start: Svc["start"] = (words, { env = {}, input } = {}) => {
    const given = { PATH: process.env["PATH"], HOME: folder, ...variables(), ...env };
    const child = spawn(process.execPath, [join(folder, "cli/main.js"), ...words], { env: given });
    const written = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (written.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (written.stderr += text));
    // A command that reads no input may end before it is written.
    child.stdin.on("error", () => undefined).end(input);
    const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST_MS);
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        clearTimeout(timer);
        resolve({ code, ...written });
      });
    });
    return {
      output: () => written.stdout,
      errors: () => written.stderr,
      interrupt: () => void child.kill("SIGINT"),
      stopReading: () => void child.stdout.destroy(),
      ended,
    };
  };
  const run: Svc["run"] = (words, given) => start(words, given).ended;
  return {
    get folder() {
      return folder;
    },
    start,
    run,
    async out(words, given) {
      const { code, stdout, stderr } = await run(words, given);
      if (code !== 0) throw new Error(`svc ${words.join(" ")} ended with ${code}: ${stderr}`);
      return stdout.trimEnd();
    },
  };
}
