/**
 * kill -9 of agent, orchestrator, CRIU or dockerd in the middle of pause, resume, fork and snapshot. Afterwards the sandbox
 * runs or can be resumed with its memory; it is never lost and never exists twice, and nothing is left over. One exception:
 * a CRIU that is killed in a dump may end the process that it holds. When that ends the sandbox, its disk is kept as a pause
 * without memory, and the pause's event says so. The test prints its runs as a table.
 */

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dropFrozen } from "../support/platform/frozen.ts";
import { containersOf } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, checkout, openPlatform } from "../support/platform/platform.ts";
import { pidOf, run, untilReady } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import { expectKept, expectOnDisk, fillMemory } from "../support/sandbox/memory-keeper.ts";

const platform = openPlatform();

type Victim = "agent" | "orchestrator" | "criu" | "dockerd";
/** Milliseconds after the begin of the action, or the moment at which CRIU has written the first megabytes of memory. */
type Moment = number | "pages";

interface Case {
  readonly victim: Victim;
  readonly during: string;
  readonly moment: Moment;
  readonly after: string;
}

interface Run extends Case {
  readonly answer: string;
  readonly state: string;
  readonly kept: "memory" | "disk";
}

interface Interruptible {
  /** Brings the sandbox into the state in which the action begins. */
  readonly prepare: () => Promise<void>;
  /** Resolves to what the caller hears. */
  readonly action: () => Promise<string>;
  /** Makes the sandbox run again after an action that was not interrupted. */
  readonly again: () => Promise<void>;
}

const runs: Run[] = [];
/** Longer than a dump or a restore takes on a busy machine, and shorter than the SDK would wait for a lost answer. */
const REQUEST_MS = 40_000;

beforeAll(() => untilReady(platform));
afterAll(() => {
  const line = ({ victim, during, after, answer, state, kept }: Run) =>
    [victim.padEnd(13), during.padEnd(9), after.padEnd(8), answer.padEnd(30), state.padEnd(10), kept].join("  ");
  console.log(
    ["killed         during     after     the caller heard               afterwards  kept", ...runs.map(line)].join(
      "\n",
    ),
  );
});

const actions: Readonly<Record<string, (sandbox: Sandbox) => Promise<unknown>>> = {
  pause: (sandbox) => sandbox.pause({ requestTimeoutMs: REQUEST_MS }),
  resume: async (sandbox) => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000, requestTimeoutMs: REQUEST_MS }),
  fork: (sandbox) => sandbox.fork({ count: 2, timeoutMs: 600_000, requestTimeoutMs: REQUEST_MS }),
  snapshot: (sandbox) => sandbox.createSnapshot({ requestTimeoutMs: REQUEST_MS }),
};

const every = Object.keys(actions);
const dumps = every.filter((name) => name !== "resume");
const at = (victim: Victim, during: readonly string[], moments: readonly Moment[]): readonly Case[] =>
  during.flatMap((name) => moments.map((moment) => ({ victim, during: name, moment, after: inWords(moment) })));

/** All moments, or where the whole run sets SVC_TEST_MOMENTS=one, one of each action: each action gets another one of them. */
function chosen(cases: readonly Case[]): readonly Case[] {
  if (process.env.SVC_TEST_MOMENTS !== "one") return cases;
  return [...new Set(cases.map(({ during }) => during))].flatMap((name, index) => {
    const moments = cases.filter(({ during }) => during === name);
    return moments.slice(index % moments.length).slice(0, 1);
  });
}

const cases = [
  ...chosen(at("agent", every, [5, 60, 200])),
  ...chosen(at("orchestrator", every, [5, 60, 200])),
  ...chosen(at("criu", dumps, [0, "pages"])),
  ...chosen(at("criu", ["resume"], [0, 30])),
];

test.each(cases)("a sandbox survives $victim killed in a $during, after $after", (one) => survives(one), 600_000);

// Killing the Docker daemon can take every container of the machine with it; see engine.test.ts.
test
  .skipIf(process.env.SVC_TEST_KILL_ENGINE !== "1")
  .each(chosen([...at("dockerd", every, [5, 100]), ...at("dockerd", ["fork"], [250])]))(
  "a sandbox survives $victim killed in a $during, after $after (only with SVC_TEST_KILL_ENGINE=1)",
  (one) => survives(one),
  600_000,
);

async function survives(one: Case): Promise<void> {
  const { victim, during, moment } = one;
  const sandbox = await Sandbox.create({ timeoutMs: 900_000 });
  try {
    const kept = await fillMemory(sandbox, moment === "pages" ? 64 : 16);
    await named(sandbox);
    // A container that is being made when Docker dies has no record; the agent removes it after minutes
    // (agent/recovery/janitor.ts).
    if (victim === "dockerd") await poolAtRest();
    const prepare = async () => {
      if (during !== "resume") return;
      await sandbox.pause();
      // A thaw ends at once: only a restore still runs at the later moments.
      if (moment !== 5) await dropFrozen(platform, sandbox.sandboxId);
    };
    const action = () =>
      (actions[during] as (sandbox: Sandbox) => Promise<unknown>)(sandbox).then(
        () => "done",
        (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message.slice(0, 60)}` : "unknown"),
      );
    const answer = await interrupted({ prepare, action, again: () => connected(sandbox, true) }, victim, moment);
    await untilReady(platform);
    const { state } = await Sandbox.getInfo(sandbox.sandboxId);
    // A transition whose process has died is finished or undone; until then a caller may have to repeat its request.
    await expect
      .poll(
        () =>
          connected(sandbox, victim === "criu").then(
            () => "connected",
            (error: Error) => error.message,
          ),
        { timeout: 180_000, interval: 500 },
      )
      .toBe("connected");
    const onDisk = victim === "criu" && dumps.includes(during) && (await memoryGivenUp(sandbox));
    await (onDisk ? expectOnDisk(sandbox, kept) : expectKept(sandbox, kept));
    runs.push({ ...one, answer, state, kept: onDisk ? "disk" : "memory" });
    // A restored container may get its name a moment after the start; Docker gives no name twice.
    const mine = async () => (await containersOf(platform)).filter(({ name }) => name === nameOf(sandbox));
    await expect.poll(async () => (await mine()).filter(({ state: now }) => now === "running")).toHaveLength(1);
  } finally {
    await killEverything();
  }
  await expectNoProblems(platform);
}

/** Connects to the sandbox, and on request runs a command: it counts as running until the node reports its end. */
async function connected(sandbox: Sandbox, answers: boolean): Promise<void> {
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 900_000, requestTimeoutMs: REQUEST_MS });
  if (answers) await again.commands.run("true", { requestTimeoutMs: REQUEST_MS });
}

/** Whether an event says that the sandbox was paused without its memory. */
async function memoryGivenUp(sandbox: Sandbox): Promise<boolean> {
  const { json } = await api(platform, "GET", `/events/sandboxes/${sandbox.sandboxId}`);
  const events = json as { type: string; eventData: { memory?: boolean } | null }[];
  return events.some(({ type, eventData }) => type === "sandbox.lifecycle.paused" && eventData?.memory === false);
}

const nameOf = (sandbox: Sandbox) => `svc-${sandbox.sandboxId}`;

/** A container from the pool gets its sandbox's name a moment after the start. */
async function named(sandbox: Sandbox): Promise<void> {
  await expect.poll(async () => (await containersOf(platform)).map(({ name }) => name)).toContain(nameOf(sandbox));
}

async function poolAtRest(): Promise<void> {
  const looks = [""];
  const look = async () => {
    const containers = await containersOf(platform);
    looks.push(containers.some((one) => one.state === "created") ? "" : containers.map(({ id }) => id).join());
    return looks.at(-1) !== "" && looks.at(-1) === looks.at(-2);
  };
  await expect.poll(look, { timeout: 120_000, interval: 1_500 }).toBe(true);
}

/**
 * Resolves to the action's answer. On a busy machine CRIU may end before this process can kill it. Then nothing was interrupted:
 * the action must have succeeded, and the test makes the sandbox run again and repeats it, ten times at most.
 */
async function interrupted({ prepare, action, again }: Interruptible, victim: Victim, moment: Moment): Promise<string> {
  await prepare();
  if (victim === "criu") {
    for (let tries = 1; tries <= 10; tries++) {
      const { killed: hit, answer } = await killCriu(action, moment);
      if (hit) return answer;
      expect(answer, "the answer to an action that nothing has interrupted").toBe("done");
      await again();
      await prepare();
    }
    throw new Error("the test found CRIU at work in none of ten tries");
  }
  // Looked up before: it takes longer than many an action.
  const pid =
    victim === "dockerd" ? Number(readFileSync("/var/run/docker.pid", "utf8").trim()) : await pidOf(platform, victim);
  const outcome = action();
  await delay(moment === "pages" ? 0 : moment);
  process.kill(pid, "SIGKILL");
  if (victim === "dockerd") await run(`${checkout}scripts/host/engine/start`, []);
  return outcome;
}

/**
 * Kills the first CRIU process that has the title which CRIU gives itself at work; runc starts others before to ask for
 * their version. The loop reads only new processes and never waits: on a busy machine CRIU would otherwise end before the
 * loop finds it.
 */
async function killCriu(action: () => Promise<string>, moment: Moment): Promise<{ killed: boolean; answer: string }> {
  const before = new Set(readdirSync("/proc"));
  const state = { over: false, killed: false };
  const outcome = action().finally(() => {
    state.over = true;
  });
  const found = (): string | undefined =>
    readdirSync("/proc").find((pid) => /^\d+$/.test(pid) && !before.has(pid) && isCriu(pid));
  let pid = found();
  while (pid === undefined && !state.over) {
    await delay(1);
    pid = found();
  }
  if (pid !== undefined) {
    if (moment === "pages") while (!state.over && pagesOf(pid) < 4 << 20) await delay(1);
    else await delay(moment);
    state.killed = killed(Number(pid));
  }
  return { killed: state.killed, answer: await outcome };
}

function isCriu(pid: string): boolean {
  try {
    return /(?:dump|restore) --rpc/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
  } catch {
    return false;
  }
}

/** Returns how many bytes of memory a CRIU process has written. */
function pagesOf(pid: string): number {
  try {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      const path = `/proc/${pid}/fd/${fd}`;
      if (/\/pages-\d+\.img$/.test(readlinkSync(path)) && statSync(path).size > 0) return statSync(path).size;
    }
  } catch {
    // CRIU closed the file or ended in between.
  }
  return 0;
}

function inWords(moment: Moment): string {
  return moment === "pages" ? "4 MB" : `${moment} ms`;
}

/** Kills the process; false when it had ended already. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

/** Removes what is listed, again while there is something: what an interrupted action was to make may come only now. */
async function killEverything(): Promise<void> {
  const nothingLeft = async () => {
    let found = 0;
    const pages = Sandbox.list();
    while (pages.hasNext) {
      const infos = await pages.nextItems();
      found += infos.length;
      await Promise.all(infos.map(({ sandboxId }) => Sandbox.kill(sandboxId).catch(() => false)));
    }
    const snapshots = Sandbox.listSnapshots();
    while (snapshots.hasNext) {
      const infos = await snapshots.nextItems();
      found += infos.length;
      await Promise.all(infos.map(({ snapshotId }) => Sandbox.deleteSnapshot(snapshotId).catch(() => false)));
    }
    return found === 0;
  };
  await until(nothingLeft, { what: "the end of all sandboxes and snapshots", timeoutMs: 120_000, everyMs: 500 });
}
