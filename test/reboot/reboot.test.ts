/**
 * The machine reboots while sandboxes run and are paused, and `./scripts/up` brings the platform back: those that ran are told as
 * ended, those that were paused go on, a template and a snapshot start, and nothing is left over. The reboot ends every container of
 * the machine's Docker daemon, so `npm run test:reboot` says with SVC_TEST_KILL_ENGINE=1 that it may. Fifty sandboxes are there when it
 * comes; SVC_TEST_RUNNING_SANDBOXES and SVC_TEST_KEPT_SANDBOXES are other numbers of running and of paused ones.
 */

import { randomUUID } from "node:crypto";
import { Sandbox, SandboxNotFoundError, Template, waitForPort } from "e2b";
import { afterAll, describe, expect, test } from "vitest";
import { type BaseLine, countBesidePool } from "../support/platform/beside-pool.ts";
import { dropFrozen } from "../support/platform/frozen.ts";
import { containersOf, countOrphans } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, openPlatform } from "../support/platform/platform.ts";
import { service, untilReady } from "../support/platform/programs.ts";
import {
  anotherBootId,
  bootId,
  bringUp,
  countKernelObjects,
  powerOff,
  rebootRefusal,
} from "../support/platform/reboot.ts";
import { SIZE } from "../support/platform/templates.ts";
import { createLasting, expectAllThere, inTurn, type Lasting, pauseAll } from "../support/sandbox/lasting.ts";
import { type Counter, startCounter } from "../support/sandbox/pausing.ts";
import { refusal } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const RAN = Number(process.env.SVC_TEST_RUNNING_SANDBOXES ?? "20");
const KEPT = Number(process.env.SVC_TEST_KEPT_SANDBOXES ?? "30");
/** How a sandbox was paused: one that is kept frozen in memory has its memory on the disk too. */
const WAYS = ["stored", "without memory", "frozen"] as const;
/** Two times `up` on a slow machine, and a minute for each sandbox. */
const LIMIT_MS = 1_800_000 + (RAN + KEPT) * 60_000;
const HOUR_MS = 3_600_000;
const PORT = 8000;
const TEMPLATE = `reboot-${randomUUID().slice(0, 8)}`;
const SNAPSHOT = `${TEMPLATE}-snapshot`;

interface Made {
  readonly before: BaseLine;
  readonly ran: readonly Lasting[];
  readonly kept: Readonly<Record<(typeof WAYS)[number], readonly Lasting[]>>;
  readonly snapshot: { readonly counter: Counter; readonly count: number };
}

const machine = {
  is: "as found" as "as found" | "in use" | "off" | "up",
  takeBootIdBack: () => Promise.resolve(),
  made: undefined as Made | undefined,
};

/** What was made before the reboot; throws when the machine has not come back. */
function rebooted(): Made {
  if (machine.made === undefined || machine.is !== "up")
    throw new Error("the machine did not come back from its reboot");
  return machine.made;
}

// Also after a failure the machine gets back what the tests have taken, as far as each step can.
afterAll(async () => {
  if (machine.is === "as found") return;
  const errors: unknown[] = [];
  for (const step of [machine.takeBootIdBack, programsBack, removeMade]) {
    await step().catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw new AggregateError(errors, "not all that the tests took was given back");
}, LIMIT_MS);

test(
  `a machine with ${RAN} running and ${KEPT} paused sandboxes reboots, and up brings its platform back`,
  async () => {
    const allowed = process.env.SVC_TEST_KILL_ENGINE === "1";
    const refused = allowed ? await rebootRefusal(platform) : "SVC_TEST_KILL_ENGINE=1 does not allow it";
    if (refused !== undefined) throw new Error(`this machine cannot be rebooted for a test: ${refused}`);
    await untilReady(platform);
    machine.is = "in use";
    const before = await atRest();
    const snapshot = await makeTemplateAndSnapshot();
    const kept = await makePaused();
    const ran = await createLasting(RAN);
    machine.made = { before, ran, kept, snapshot };
    await expectFrozen(kept.frozen);

    const earlier = await bootId();
    machine.is = "off";
    await powerOff(platform);
    machine.takeBootIdBack = await anotherBootId();
    expect(await bootId()).not.toBe(earlier);
    await bringUp(platform);
    await untilReady(platform);
    machine.is = "up";
    await expectNoProblems(platform, 180_000);
  },
  LIMIT_MS,
);

describe("after the reboot", () => {
  test("each sandbox that ran is told as ended with a reason, in the API and by an event, and connect does not find it", async () => {
    for (const { id } of rebooted().ran) {
      await expect
        .poll(async () => (await api(platform, "GET", `/sandboxes/${id}`)).status, { timeout: 60_000 })
        .toBe(404);
      const { json } = await api(platform, "GET", `/sandboxes/${id}?ended=true`);
      expect(json).toMatchObject({ state: "ended", endReason: expect.stringMatching(/^(exited|lost)$/) as unknown });
      const { endReason } = json as { endReason: string };
      const events = (await api(platform, "GET", `/events/sandboxes/${id}`)).json as LifecycleEvent[];
      const killed = events.filter(({ type }) => type === "sandbox.lifecycle.killed");
      expect(killed).toMatchObject([{ eventData: { reason: endReason } }]);
      expect(await refusal(Sandbox.connect(id))).toBeInstanceOf(SandboxNotFoundError);
    }
  }, 120_000);

  test("each sandbox that was paused is told as paused", async () => {
    for (const { id } of Object.values(rebooted().kept).flat()) {
      expect((await Sandbox.getInfo(id)).state).toBe("paused");
    }
  });

  test(
    "sandboxes that were paused with their memory go on with their counts and their files, also those that were frozen",
    async () => {
      const { stored, frozen } = rebooted().kept;
      await expectAllThere([...stored, ...frozen], platform.apiKey);
    },
    LIMIT_MS,
  );

  test(
    "sandboxes that were paused without their memory start anew with their files",
    async () => {
      await inTurn(rebooted().kept["without memory"], async ({ id, word }) => {
        const sandbox = await Sandbox.connect(id, { timeoutMs: HOUR_MS });
        expect((await sandbox.getInfo()).metadata).toEqual({ word });
        expect(await sandbox.files.read("word.txt")).toBe(word);
        // The file in memory of the process that counted is gone with it.
        expect((await sandbox.commands.run("ls /dev/shm")).stdout).not.toContain("lasting");
      });
    },
    LIMIT_MS,
  );

  test("a template starts with its server, and a named snapshot with its count and its files", async () => {
    const { counter, count } = rebooted().snapshot;
    const made = await Sandbox.create(TEMPLATE, { timeoutMs: HOUR_MS });
    expect((await made.commands.run(`curl -sf localhost:${PORT}/built.txt`)).stdout).toBe("built\n");
    const copy = await Sandbox.create(SNAPSHOT, { timeoutMs: HOUR_MS });
    expect(await copy.files.read("kept.txt")).toBe("on disk");
    const there = await counter.read(copy);
    expect(there).toBeGreaterThanOrEqual(count);
    await expect.poll(() => counter.read(copy)).toBeGreaterThan(there);
  }, 180_000);

  test("paused and new sandboxes pause and resume once more", async () => {
    const { stored, frozen } = rebooted().kept;
    const again = [...stored, ...frozen].slice(0, 2);
    const fresh = await createLasting(1);
    await pauseAll([...again, ...fresh]);
    await expectAllThere([...again, ...fresh], platform.apiKey);
  }, 240_000);

  test("nothing is left over on the machine when the sandboxes, the template and the snapshot are removed", async () => {
    const { before } = rebooted();
    await removeMade();
    const above = async () =>
      [...(await count())]
        .filter(([what, now]) => now > (before.get(what) ?? 0))
        .map(([what, now]) => `${what}: ${now}`);
    await expect.poll(above, { timeout: 180_000, interval: 2_000 }).toEqual([]);
    await expectNoProblems(platform);
  }, 300_000);
});

interface LifecycleEvent {
  readonly type: string;
}

async function makePaused(): Promise<Made["kept"]> {
  const all = await createLasting(KEPT);
  const of = (way: number) => all.filter((_one, index) => index % WAYS.length === way);
  const [stored, without, frozen] = [of(0), of(1), of(2)];
  await pauseAll(stored);
  await inTurn(stored, ({ id }) => dropFrozen(platform, id));
  await inTurn(without, ({ id }) => Sandbox.pause(id, { keepMemory: false }));
  // Last, because a node keeps the newest ones frozen.
  await pauseAll(frozen);
  return { stored, "without memory": without, frozen };
}

/** The node may keep only some of many frozen. */
async function expectFrozen(paused: readonly Lasting[]): Promise<void> {
  if (paused.length === 0) return;
  const running = (await containersOf(platform)).filter(({ state }) => state === "running").map(({ name }) => name);
  expect(running.filter((name) => paused.some(({ id }) => name === `svc-${id}`))).not.toEqual([]);
}

/** The template's server runs in it already, and the snapshot has its memory. */
async function makeTemplateAndSnapshot(): Promise<Made["snapshot"]> {
  const template = Template()
    .fromTemplate("base")
    .runCmd("echo built > /home/user/built.txt")
    .setStartCmd(`python3 -m http.server ${PORT} --directory /home/user`, waitForPort(PORT));
  await Template.build(template, TEMPLATE, { ...SIZE });
  const source = await Sandbox.create({ timeoutMs: HOUR_MS });
  await source.files.write("kept.txt", "on disk");
  const counter = await startCounter(source);
  const count = await counter.read();
  await source.createSnapshot({ name: SNAPSHOT });
  await source.kill();
  return { counter, count };
}

/** Removes all sandboxes, the template and the snapshot, as far as they are there. */
async function removeMade(): Promise<void> {
  const ids: string[] = [];
  const pages = Sandbox.list();
  while (pages.hasNext) for (const { sandboxId } of await pages.nextItems()) ids.push(sandboxId);
  await inTurn(ids, (id) => Sandbox.kill(id));
  const snapshots = await Sandbox.listSnapshots({ name: SNAPSHOT }).nextItems();
  for (const { snapshotId } of snapshots) await Sandbox.deleteSnapshot(snapshotId);
  await api(platform, "DELETE", `/templates/${TEMPLATE}`);
}

async function programsBack(): Promise<void> {
  if (machine.is === "in use") return;
  if (machine.is === "off") await bringUp(platform);
  // Both have read the other boot id, by which the orchestrator tells machines apart.
  for (const program of ["orchestrator", "agent"] as const) await service(platform, "restart", program);
  await untilReady(platform);
}

async function count(): Promise<BaseLine> {
  const { orphanShims, orphanCgroups } = await countOrphans();
  return new Map([
    ...(await countBesidePool(platform)),
    ...(await countKernelObjects(platform)),
    ["shims of no container", orphanShims],
    ["cgroups of no container", orphanCgroups],
  ]);
}

/** Counts again until two counts, two seconds apart, agree. */
async function atRest(): Promise<BaseLine> {
  const seen = { last: await count() };
  const isSame = async () => {
    const now = await count();
    const same = JSON.stringify([...now]) === JSON.stringify([...seen.last]);
    seen.last = now;
    return same;
  };
  await expect.poll(isSame, { timeout: 120_000, interval: 2_000 }).toBe(true);
  return seen.last;
}
