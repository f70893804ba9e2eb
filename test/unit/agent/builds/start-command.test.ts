/** The start command of a template in a sandbox that boots: it runs, and the boot waits for it as the template says. */

import { expect, test } from "vitest";
import { startCommand } from "../../../../agent/builds/start-command.ts";
import type { ExitStatus, Processes } from "../../../../agent/builds/steps/processes.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const FOREVER = new Promise<ExitStatus>(() => undefined);

interface World {
  readonly ran: string[];
  /** Boots a sandbox: calls `startCommand` as the agent does. */
  readonly boot: (restored?: "nothing" | "memory") => Promise<void>;
}

/**
 * `serve` is the exit code of the start command, which runs on without it; the ready command fails `failures` times first.
 */
function world({
  serve,
  failures = 0,
  asks = true,
  readyLimitMs = 60_000,
}: {
  readonly serve?: number;
  readonly failures?: number;
  readonly asks?: boolean;
  readonly readyLimitMs?: number;
}): World {
  const ran: string[] = [];
  const ended = (exitCode: number) => Promise.resolve({ exitCode, status: "" });
  const processes: Processes = {
    start(_at, { args, tag }) {
      ran.push(`${args.at(-1) ?? ""}${tag === undefined ? "" : ` as ${tag}`}`);
      if (tag !== undefined) return Promise.resolve({ pid: 2, ended: serve === undefined ? FOREVER : ended(serve) });
      return Promise.resolve({ pid: 2, ended: ended(ran.length - 1 > failures ? 0 : 1) });
    },
    upload: () => Promise.resolve(),
  };
  const settings = { envs: {}, user: "user", workdir: "/", startCmd: "serve", ...(asks ? { readyCmd: "ready" } : {}) };
  const build = {
    id: "b",
    templateId: "t",
    state: "ready" as const,
    reason: undefined,
    snapshotId: undefined,
    projectId: undefined,
    changedAt: 0,
  };
  const result = { image: "i", settings, diskBytes: 0, envdVersion: "1" };
  const start = startCommand({ store: { get: () => ({ ...build, result }) }, processes, log, readyLimitMs });
  const body = { build: { buildId: "b" }, sandboxId: "s", envs: {}, accessToken: "t" };
  const container = { slot: { address: "10.0.0.2" } };
  return {
    ran,
    boot: (restored = "nothing") =>
      start(...([body, { container, restored }, AbortSignal.timeout(60_000)] as unknown as Parameters<typeof start>)),
  };
}

test("the sandbox starts when the ready command succeeds", async () => {
  const { ran, boot } = world({ failures: 2 });
  await boot();
  expect(ran).toEqual(["serve as start_cmd", "ready", "ready", "ready"]);
});

test("without a ready command the boot waits for nothing, and a boot from memory runs no command", async () => {
  const plain = world({ asks: false });
  await plain.boot();
  expect(plain.ran).toEqual(["serve as start_cmd"]);
  const restored = world({});
  await restored.boot("memory");
  expect(restored.ran).toEqual([]);
});

test.each([
  ["failed", { serve: 1, failures: 1_000_000 }],
  ["is never ready", { failures: 1_000_000, readyLimitMs: 250 }],
])("a start command that %s does not hold up the sandbox", async (_what, how) => {
  const { ran, boot } = world(how);
  await boot();
  expect(ran[0]).toBe("serve as start_cmd");
});

test("the ready command still runs after a start command that ended well", async () => {
  const { ran, boot } = world({ serve: 0, failures: 1 });
  await boot();
  expect(ran).toEqual(["serve as start_cmd", "ready", "ready"]);
});
