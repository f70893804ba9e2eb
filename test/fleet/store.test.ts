/**
 * The blob store of a fleet, whichever it has: a directory, or with `SVC_FLEET_STORE=s3 ./scripts/fleet up` an S3 service. Templates
 * reach every node by it, what nobody names goes out of it, and a node that cannot use it goes on and says what to mend. What happens
 * while it is away, and when a node is gone that has stored something: `absences.test.ts`.
 */

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Sandbox, Template } from "e2b";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ALL_BLOBS, keyOf, parseRef, periodAt, refOf, refOfKey } from "../../agent/blobs/content/refs.ts";
import { listAll } from "../../agent/blobs/stores/store.ts";
import { storeFindings, storeOf } from "../support/fleet/blob-store.ts";
import { allThere } from "../support/fleet/counting.ts";
import { type Fleet, type FleetNode, HOME, openFleet } from "../support/fleet/fleet.ts";
import { insist, madeBy, untilDone } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { endForGood, untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, onlyOn, removeAllBut, storageOf, untilStored } from "../support/fleet/sandboxes.ts";
import { api, asAdmin } from "../support/platform/platform.ts";
import { service } from "../support/platform/programs.ts";
import { addOwnSetting, hostStep } from "../support/platform/settings.ts";
import { buildTemplate, fresh } from "../support/platform/templates.ts";

const fleet: Fleet = openFleet();
const store = storeOf(fleet);
const [, , node] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
const { signal } = new AbortController();
/** Younger ones are kept, whether or not anything names them. */
const OLD_PERIODS = 10;
/** The orchestrators look every ten minutes whether the collection of the day is due. */
const COLLECTED_MS = 900_000;

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test("a template starts with its memory on every node out of the store, when the node that built it is gone", async () => {
  // Its shell has the word in memory only: one that was started anew would have another.
  const count = "n=0; while :; do n=$((n+1)); echo $word $n >/tmp/word; sleep 0.5; done";
  const start = `word=$(cat /proc/sys/kernel/random/uuid); ${count}`;
  const template = Template().fromTemplate("base").setStartCmd(start, "test -s /tmp/word");
  const { templateId, buildId } = await buildTemplate(fleet.through(0), fresh("store"), template);
  const stored = { inStore: true, hasMemory: true, memoryInStore: true };
  await expect.poll(() => buildOf(buildId), { timeout: 300_000, interval: 1_000 }).toMatchObject(stored);
  const home = (await buildOf(buildId))?.nodeID;
  const builder = fleet.nodes.find(({ id }) => id === home);
  if (builder === undefined) throw new Error(`no node of the fleet has built ${buildId}`);
  const words = new Set(await wordsOn(builder, templateId));
  const comesBack = await endForGood(builder);
  try {
    for (const other of fleet.nodes) {
      if (other !== builder) for (const word of await wordsOn(other, templateId, [builder])) words.add(word);
    }
  } finally {
    await comesBack();
  }
  expect([...words]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
  await expectInvariants(fleet);
}, 900_000);

/** What operators see of a template's build. */
async function buildOf(buildId: string): Promise<{ readonly nodeID: string } | undefined> {
  const platform = fleet.through(0);
  const { json } = await api(platform, "GET", "/admin/storage", asAdmin(platform));
  const { templates } = json as { templates: { buildID: string; nodeID: string }[] };
  return templates.find(({ buildID }) => buildID === buildId);
}

/** What the template's start command, which goes on in a new sandbox on that node, has in its memory. */
async function wordsOn(on: FleetNode, templateID: string, gone: readonly FleetNode[] = []): Promise<readonly string[]> {
  const body = { templateID, timeout: 3_600 };
  const make = async () => {
    const create = {
      what: `a sandbox of ${templateID}`,
      // A node that fetches its memory answers 503 until it has it.
      ask: (by: number) => api(fleet.through(by), "POST", "/v2/sandboxes", { body }).catch(() => undefined),
      isDone: ({ status }: { readonly status: number }) => status === 201,
    };
    const { last } = await untilDone(create, 0);
    return madeBy(last).map((id) => ({ id }));
  };
  const made = await onlyOn(fleet, on, make, gone);
  const words: string[] = [];
  for (const { id } of made) {
    const sandbox = await Sandbox.connect(id, { ...fleet.sdk(1), timeoutMs: 3_600_000 });
    // The template's disk has one line, of which nothing would come more.
    const lines = new Set<string>();
    const counts = async () => {
      const line = (await sandbox.files.read("/tmp/word")).trim();
      // The shell is just writing it.
      if (line !== "") lines.add(line);
      return lines.size;
    };
    await expect.poll(counts, { timeout: 60_000, interval: 500 }).toBeGreaterThan(1);
    words.push(...[...lines].map((line) => line.split(" ", 1)[0] ?? ""));
    await insist(fleet, { kind: "kill", id }, 0);
  }
  return words;
}

interface Mistake {
  readonly what: string;
  readonly setting: string;
  /** In what the node says, as evidence and as the way out. */
  readonly says: { readonly evidence: string; readonly wayOut: string };
}

const mistakes: Readonly<Record<typeof store.kind, readonly Mistake[]>> = {
  directory: [
    {
      what: "a directory that is not mounted",
      setting: `SVC_BLOB_STORE=${HOME}/not-mounted`,
      says: { evidence: "is its file system mounted?", wayOut: "SVC_BLOB_STORE" },
    },
  ],
  s3: [
    {
      what: "a wrong secret",
      setting: "SVC_BLOB_STORE_SECRET=wrong",
      says: { evidence: "SignatureDoesNotMatch", wayOut: "SVC_BLOB_STORE_SECRET" },
    },
    {
      what: "a wrong access key",
      setting: "SVC_BLOB_STORE_ACCESS_KEY=fleet:nobody",
      says: { evidence: "are the access key and its secret right?", wayOut: "SVC_BLOB_STORE_ACCESS_KEY" },
    },
    {
      what: "a wrong region",
      setting: "SVC_BLOB_STORE_REGION=eu-west-9",
      says: { evidence: "is the region right? (SVC_BLOB_STORE_REGION)", wayOut: "SVC_BLOB_STORE_REGION" },
    },
    {
      what: "a bucket that nobody made",
      setting: "SVC_BLOB_STORE=s3://no-such-bucket",
      says: { evidence: "the bucket does not exist", wayOut: "SVC_BLOB_STORE" },
    },
    {
      what: "an address where nothing answers",
      setting: "SVC_BLOB_STORE_URL=http://127.0.0.1:1",
      says: { evidence: "is SVC_BLOB_STORE_URL its address?", wayOut: "SVC_BLOB_STORE_URL" },
    },
  ],
};

test.each(mistakes[store.kind])(
  "a node whose store is $what says which setting to mend, pauses and resumes as before, and stores what waited once it is mended",
  async ({ setting, says: { evidence, wayOut } }) => {
    const [one] = await createOn(fleet, node, 1);
    if (one === undefined) throw new Error("there is no sandbox");
    const findings = () => storeFindings(fleet.through(0));
    await withSetting(setting, async () => {
      const names = {
        evidence: expect.stringContaining(evidence) as string,
        wayOut: expect.stringContaining(wayOut) as string,
      };
      const said = async () => (await findings()).get(node.id);
      await expect.poll(said, { timeout: 120_000, interval: 1_000 }).toMatchObject(names);
      // Only the node that has the mistake.
      expect([...(await findings()).keys()]).toEqual([node.id]);
      await insist(fleet, { kind: "pause", id: one.id }, 0);
      await allThere(fleet, [one], [1]);
      await insist(fleet, { kind: "pause", id: one.id }, 1);
      const waits = { inStore: false, upload: { failure: expect.stringContaining("the store ") as string } };
      await expect.poll(() => storageOf(fleet, one.id), { timeout: 120_000, interval: 1_000 }).toMatchObject(waits);
    });
    await expect.poll(findings, { timeout: 120_000, interval: 1_000 }).toEqual(new Map());
    await untilStored(fleet, one.id);
    await allThere(fleet, [one]);
    await removeAllBut(fleet, []);
    await expectInvariants(fleet);
  },
  900_000,
);

/** Runs the node's agent with one more setting; the agent starts again before and after. */
async function withSetting(line: string, work: () => Promise<void>): Promise<void> {
  const restart = async () => {
    await service(node.platform, "restart", "agent");
    await untilFleetReady(fleet);
  };
  const takeBack = addOwnSetting(node.platform, line);
  try {
    await hostStep(node.platform, "settings", "replace");
    await restart();
    await work();
  } finally {
    await takeBack();
    await restart();
  }
}

// A directory has no processes that could stand still.
test.each(store.kind === "s3" ? [{ what: "an S3 service" }] : [])(
  "$what that takes requests and answers none holds up no pause and no resume, and is named",
  async () => {
    const [one] = await createOn(fleet, node, 1);
    if (one === undefined) throw new Error("there is no sandbox");
    const pids = await store.pids();
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    try {
      await insist(fleet, { kind: "pause", id: one.id }, 0);
      await allThere(fleet, [one], [1]);
      await insist(fleet, { kind: "pause", id: one.id }, 1);
      const said = async () => (await storeFindings(fleet.through(1))).get(node.id);
      await expect.poll(said, { timeout: 180_000, interval: 1_000 }).toBeDefined();
      await allThere(fleet, [one], [0]);
      await insist(fleet, { kind: "pause", id: one.id }, 0);
    } finally {
      for (const pid of pids) process.kill(pid, "SIGCONT");
    }
    await untilStored(fleet, one.id);
    await expect.poll(async () => (await storeFindings(fleet.through(1))).size, { timeout: 120_000 }).toBe(0);
    await allThere(fleet, [one]);
    await removeAllBut(fleet, []);
    await expectInvariants(fleet);
  },
  900_000,
);

test(
  "the collection of the day takes out of the store what is old and named by nobody, and nothing else",
  async () => {
    const lasting = await createOn(fleet, node, 1);
    for (const { id } of lasting) {
      await insist(fleet, { kind: "pause", id }, 0);
      await untilStored(fleet, id);
    }
    const now = periodAt(Date.now());
    const [old, young] = [now - OLD_PERIODS, now].map((period) =>
      keyOf(refOf(randomBytes(32).toString("hex"), period)),
    );
    if (old === undefined || young === undefined) throw new Error("there is no key");
    await store.use(async (blobs) => {
      for (const key of [old, young]) await blobs.put(key, Buffer.from("of nobody"), signal);
    });
    const before = await keysOf(now);
    await forgetCollection();
    const isThere = () => store.use(async (blobs) => (await blobs.size(old, signal)) !== undefined);
    await expect.poll(isThere, { timeout: COLLECTED_MS, interval: 5_000 }).toBe(false);
    const after = new Set(await keysOf(now));
    expect(before.filter((key) => !after.has(key))).toEqual([]);
    await store.use((blobs) => blobs.delete(young, signal));
    await allThere(fleet, lasting);
    await expectInvariants(fleet);
  },
  COLLECTED_MS + 600_000,
);

/** Keys of the blobs in the store that are too young to be garbage. */
async function keysOf(now: number): Promise<readonly string[]> {
  return store.use(async (blobs) => {
    const keys: string[] = [];
    for await (const { key } of listAll(blobs, ALL_BLOBS, signal)) {
      const ref = refOfKey(key);
      if (ref !== undefined && parseRef(ref).period >= now - 1) keys.push(key);
    }
    return keys;
  });
}

/** Lets the orchestrators collect once more today. */
async function forgetCollection(): Promise<void> {
  const password = (await readFile(`${HOME}/postgres/password`, "utf8")).trim();
  const database = new Client({ host: "127.0.0.1", port: 15_432, user: "svc", database: "postgres", password });
  await database.connect();
  try {
    await database.query("delete from blob_sweeps");
  } finally {
    await database.end();
  }
}
