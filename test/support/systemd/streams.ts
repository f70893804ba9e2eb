/** Open streams to sandboxes of a system (`client.ts`), and how long each of them was cut. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import { checkout, readEnvFile } from "../platform/platform.ts";
import { SYSTEM_NETWORK, SYSTEM_ROOT } from "./system.ts";

/** A time without a word from a stream that says something five times a second. */
export interface Cut {
  readonly stream: string;
  /** From the last word before it to the first one after it. */
  readonly ms: number;
  /** How often the client tried to open it again; none: the stream itself went on. */
  readonly tries: number;
  readonly why: string;
}

export interface Report {
  readonly streams: number;
  /** Those that bring nothing now. */
  readonly quiet: readonly string[];
  readonly cuts: readonly Cut[];
}

export interface Streams {
  /** What became of them so far, when all of them bring something again. */
  report(): Promise<Report>;
  close(): Promise<void>;
}

const SOON = { timeout: 120_000, interval: 500 };

/** Opens a stream of each kind to each of the sandboxes; resolves when all of them bring something. The client ends with this process. */
export async function openStreams(ids: readonly string[]): Promise<Streams> {
  const settings = Object.fromEntries(readEnvFile(join(SYSTEM_ROOT, "etc/svc/own/env")));
  const program = new URL("client.ts", import.meta.url).pathname;
  const node = [process.execPath, "--import", "tsx", program, ...ids];
  const child = spawn("nsenter", [`--net=${SYSTEM_NETWORK}`, ...node], {
    cwd: checkout,
    env: { ...process.env, ...settings },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("the client of the streams has ended");
    return value;
  };
  const ask = async () => {
    child.stdin.write("report\n");
    return JSON.parse(await next()) as Report;
  };
  expect(await next()).toBe("open");
  return {
    async report() {
      const quiet = async () => (await ask()).quiet;
      await expect.poll(quiet, { ...SOON, message: "streams that bring nothing" }).toEqual([]);
      return ask();
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}

/** The cuts by kind of stream: how many streams had how many, and the longest. */
export function summaryOf({ streams, cuts }: Report): string {
  const kinds = new Map<string, Cut[]>();
  for (const cut of cuts) {
    const kind = `${cut.stream.split(" ", 1)[0]}, ${cut.tries === 0 ? "went on" : "opened again"}, ${cut.why}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), cut]);
  }
  const line = ([kind, all]: readonly [string, readonly Cut[]]) =>
    `${new Set(all.map(({ stream }) => stream)).size} streams: ${kind}: ${all.map(({ ms }) => ms).join(", ")} ms`;
  return [`${streams} streams`, ...[...kinds].map(line)].join("\n");
}
