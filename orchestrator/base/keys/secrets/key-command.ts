/**
 * A key-encryption key behind a command, such as a client of a key management service: `COMMAND wrap NAME` and
 * `COMMAND unwrap NAME` take bytes on standard input and give bytes on standard output. What a command writes beside that
 * is not read, because it may be a key.
 */

import { spawn } from "node:child_process";
import { LRUCache } from "lru-cache";
import { within } from "../../../../shared/program/deadline.ts";
import { createSemaphore } from "../../../../shared/program/semaphore.ts";
import type { KeySource } from "./secret-keys.ts";

export interface KeyCommand {
  /** Path of the program. */
  readonly command: string;
  /** Name of the key, which the command gets and the database keeps. */
  readonly name: string;
  readonly timeoutMs: number;
  readonly environment: NodeJS.ProcessEnv;
}

const AT_ONCE = 4;
const MOST_BYTES = 16 * 1024;
/** An unwrapped data key stays in memory for a while, because a command takes far longer than a request may. */
const KEPT_MS = 30_000;
const KEPT_KEYS = 1_000;

export function keyCommand(options: KeyCommand): KeySource {
  const turns = createSemaphore(AT_ONCE);
  const kept = new LRUCache<string, Buffer>({
    max: KEPT_KEYS,
    ttl: KEPT_MS,
    ttlAutopurge: true,
    dispose: (bytes) => bytes.fill(0),
  });

  async function run(verb: "wrap" | "unwrap", name: string, input: Buffer): Promise<Buffer> {
    const release = await within(options.timeoutMs, (limit) => turns.take(limit)).catch((cause: unknown) => {
      throw new Error(`${AT_ONCE} calls of ${options.command} were busy for ${options.timeoutMs} ms`, { cause });
    });
    try {
      return await call(options, [verb, name], input);
    } finally {
      release();
    }
  }

  return {
    current: () => Promise.resolve(options.name),
    async wrap(dataKey) {
      const bytes = await run("wrap", options.name, dataKey);
      if (bytes.length === 0) throw new Error(`${options.command} wrap gave no bytes`);
      return { name: options.name, bytes };
    },
    async unwrap(name, wrapped) {
      const place = `${name} ${wrapped.toString("base64")}`;
      const known = kept.get(place);
      if (known !== undefined) return Buffer.from(known);
      const bytes = await run("unwrap", name, wrapped);
      kept.set(place, Buffer.from(bytes));
      return bytes;
    },
  };
}

function call({ command, timeoutMs, environment }: KeyCommand, given: readonly string[], input: Buffer) {
  const what = `${command} ${given[0] ?? ""}`;
  return new Promise<Buffer>((resolve, reject) => {
    // A process group of its own, so that the limit also ends what the command has started.
    const child = spawn(command, given, {
      env: withoutSettings(environment),
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    const output: Buffer[] = [];
    const seen = { bytes: 0 };
    const fail = (reason: string) => {
      if (child.pid !== undefined) killGroup(child.pid);
      child.stdout.destroy();
      for (const part of output) part.fill(0);
      reject(new Error(`${what} ${reason}`));
    };
    const timer = setTimeout(() => fail(`took longer than ${timeoutMs} ms`), timeoutMs);
    child.once("error", () => {
      clearTimeout(timer);
      fail("cannot be started");
    });
    // A command that does not read its input is judged by its exit.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.stdout.on("data", (part: Buffer) => {
      seen.bytes += part.length;
      output.push(part);
      if (seen.bytes > MOST_BYTES) fail(`gave more than ${MOST_BYTES} bytes`);
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (code !== 0) {
        fail(`ended with ${signal ?? `status ${code ?? "unknown"}`}`);
        return;
      }
      const bytes = Buffer.concat(output);
      for (const part of output) part.fill(0);
      resolve(bytes);
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** The command gets the environment of the program without its settings, which hold its other keys. */
function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(environment).filter(([name]) => !/^(SVC_|DATABASE_URL)/.test(name));
  return Object.fromEntries(others);
}
