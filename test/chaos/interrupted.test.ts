/**
 * kill -9 of agent, orchestrator or CRIU in the middle of pause, resume, fork and snapshot. Afterwards the sandbox runs
 * or can be resumed, with its memory; it is never lost and never there twice, and nothing is left over. The runs are
 * printed as a table.
 */

import { readdir, readFile } from "node:fs/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dropFrozen } from "../support/frozen.ts";
import { containersOf, findProblems } from "../support/host-objects.ts";
import { expectKept, fillMemory } from "../support/memory-keeper.ts";
import { openPlatform } from "../support/platform.ts";
import { killHard, untilReady } from "../support/programs.ts";

const platform = openPlatform();

type Victim = "agent" | "orchestrator" | "criu";

interface Run {
  readonly victim: Victim;
  readonly during: string;
  readonly afterMs: number;
  readonly answer: string;
  readonly state: string;
}

const runs: Run[] = [];

beforeAll(() => untilReady(platform), 90_000);
afterAll(() => {
  const line = ({ victim, during, afterMs, answer, state }: Run) =>
    [victim.padEnd(13), during.padEnd(9), `${afterMs} ms`.padStart(7), answer.padEnd(30), state].join("  ");
  console.log(
    ["killed         during     after   the caller heard               afterwards", ...runs.map(line)].join("\n"),
  );
});

const actions: Readonly<Record<string, (sandbox: Sandbox) => Promise<unknown>>> = {
  pause: (sandbox) => sandbox.pause({ requestTimeoutMs: 20_000 }),
  resume: async (sandbox) => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000, requestTimeoutMs: 20_000 }),
  fork: (sandbox) => sandbox.fork({ count: 2, timeoutMs: 600_000, requestTimeoutMs: 20_000 }),
  snapshot: (sandbox) => sandbox.createSnapshot({ requestTimeoutMs: 20_000 }),
};

const moments: Readonly<Record<Victim, readonly number[]>> = {
  agent: [5, 60, 200],
  orchestrator: [5, 60, 200],
  criu: [0],
};

const cases = Object.entries(moments).flatMap(([victim, times]) =>
  Object.keys(actions).flatMap((during) => times.map((afterMs) => ({ victim: victim as Victim, during, afterMs }))),
);

test.each(cases)(
  "$victim killed $afterMs ms into a $during",
  async ({ victim, during, afterMs }) => {
    const sandbox = await Sandbox.create({ timeoutMs: 900_000 });
    try {
      const kept = await fillMemory(sandbox, 16);
      if (during === "resume") {
        await sandbox.pause();
        // A thaw is over at once; later moments are in the middle of a restore.
        if (afterMs !== 5) await dropFrozen(platform, sandbox.sandboxId);
      }
      const outcome = (actions[during] as (sandbox: Sandbox) => Promise<unknown>)(sandbox).then(
        () => "done",
        (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message.slice(0, 60)}` : "unknown"),
      );
      if (victim === "criu") {
        expect(await killCriu(outcome, afterMs), await outcome).toBe(true);
      } else {
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        await killHard(platform, victim);
      }
      const answer = await outcome;
      await untilReady(platform);
      const settled = () => Sandbox.getInfo(sandbox.sandboxId).then(({ state }) => state);
      const state = await settled();
      runs.push({ victim, during, afterMs, answer, state });
      // A transition that lost its owner is carried on or taken back; a caller may have to ask again until then.
      await expect
        .poll(
          () =>
            Sandbox.connect(sandbox.sandboxId, { timeoutMs: 900_000, requestTimeoutMs: 20_000 }).then(
              () => "connected",
              (error: Error) => error.message,
            ),
          { timeout: 90_000, interval: 500 },
        )
        .toBe("connected");
      await expectKept(sandbox, kept);
      const mine = (await containersOf(platform)).filter(({ name }) => name === `svc-${sandbox.sandboxId}`);
      expect(mine.filter((one) => one.state === "running")).toHaveLength(1);
    } finally {
      await killEverything();
    }
    await expect.poll(() => findProblems(platform), { timeout: 90_000, interval: 500 }).toEqual([]);
  },
  300_000,
);

/** The first process of CRIU's that shows up, by its arguments or the title it gives itself at work; false: none. */
async function killCriu(outcome: Promise<string>, afterMs: number): Promise<boolean> {
  const action = { over: false };
  void outcome.then(() => {
    action.over = true;
  });
  while (!action.over) {
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (/(?:dump|restore) --rpc|\/criu[^\0]*\0swrk\0/.test(command)) {
        await new Promise((resolve) => setTimeout(resolve, afterMs));
        return killed(Number(pid));
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return false;
}

/** False: it was through already. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

async function killEverything(): Promise<void> {
  const pages = Sandbox.list();
  while (pages.hasNext) {
    await Promise.all((await pages.nextItems()).map((info) => Sandbox.kill(info.sandboxId)));
  }
  const snapshots = Sandbox.listSnapshots();
  while (snapshots.hasNext) {
    await Promise.all((await snapshots.nextItems()).map(({ snapshotId }) => Sandbox.deleteSnapshot(snapshotId)));
  }
}
