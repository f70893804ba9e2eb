/** Containers that are made for the copies of a fork before its source is stored: each goes to one copy, or is removed. */

import { expect, test } from "vitest";
import { createCopiesAhead } from "../../../../agent/snapshots/take/copies-ahead.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const SOURCE = { build, resources, runtime: "/runtime/1", startable: false };
const WANTED = { resources, runtime: "/runtime/1", startable: true };

/** Each creation ends when the test says so. */
function world(idle = false) {
  const creations: { readonly image: string; readonly end: (id?: string) => void; readonly fail: () => void }[] = [];
  const disks: { readonly id: string; readonly end: (made: boolean) => void; readonly fail: () => void }[] = [];
  const removed: string[] = [];
  /** Starts that wait for their memory, and what was done to their networks and notes. */
  const starts: { readonly id: string; readonly end: () => void; readonly fail: () => void }[] = [];
  const steps: string[] = [];
  const step = (name: string) => Promise.resolve(void steps.push(name));
  const copies = createCopiesAhead({
    docker: {
      containers: {
        createAhead: (spec: { build: { image: string } }) =>
          new Promise<string | undefined>((resolve, reject) => {
            const fail = () => reject(new Error("no container"));
            creations.push({ image: spec.build.image, end: resolve, fail });
          }),
        furnishAhead: (id: string) =>
          new Promise<boolean>((resolve, reject) => {
            disks.push({ id, end: resolve, fail: () => reject(new Error("no disk")) });
          }),
        start: (id: string) =>
          new Promise<void>((resolve, reject) => {
            starts.push({ id, end: resolve, fail: () => reject(new Error("no start")) });
          }),
        remove: (id: string) => Promise.resolve(void removed.push(id)),
      },
      annotations: {
        joinNetwork: (id: string, path: string) => step(`${id} joins ${path}`),
        allowRenames: () => Promise.resolve(),
        awaitMemory: (id: string) => step(`${id} waits`),
        waitsForMemory: () => Promise.resolve(),
        async remove(id: string) {
          await step(`${id} is called off`);
          for (const one of starts) if (one.id === id) one.fail();
        },
      },
      runtime: (directory = "") => Promise.resolve({ directory, command: ["envd"] }),
    } as never,
    network: { plan: { gateway: "10.0.0.1" } } as never,
    idle: () => idle,
    slots: {
      take: () => Promise.resolve({ netnsPath: "/run/netns/n1" }),
      give: () => step("network given back"),
    } as never,
    log: createLog({ component: "test", level: "silent" }),
  });
  const creation = async (at: number) => {
    await expect.poll(() => creations.length).toBeGreaterThan(at);
    return creations[at];
  };
  const disk = async (at: number) => {
    await expect.poll(() => disks.length).toBeGreaterThan(at);
    return disks[at];
  };
  const start = async (at: number) => {
    await expect.poll(() => starts.length).toBeGreaterThan(at);
    return starts[at];
  };
  return { copies, creations, creation, disks, disk, removed, starts, start, steps };
}

test("they are made one after the other, and each copy takes another one, also the one that is being made", async () => {
  const { copies, creations, creation, removed } = world();
  copies.begin("s1", SOURCE, 5);
  expect((await creation(0))?.image).toBe("svc/snapshot:s1");
  (await creation(0))?.end("c1");
  await creation(1);
  const first = await copies.take("s1", WANTED);
  const second = copies.take("s1", WANTED);
  expect(await copies.take("s1", WANTED)).toBeUndefined();
  (await creation(1))?.end("c2");
  expect([first?.containerId, (await second)?.containerId]).toEqual(["c1", "c2"]);
  expect(first?.controlToken).not.toBe((await second)?.controlToken);
  await copies.stop();
  // From the first copy on no more were begun.
  expect(creations).toHaveLength(2);
  expect(removed).toEqual([]);
});

test("those that no copy has taken are removed with their snapshot, also the one that is being made", async () => {
  const { copies, creation, removed } = world();
  copies.begin("s1", SOURCE, 3);
  (await creation(0))?.end("c1");
  const second = await creation(1);
  copies.drop("s1");
  expect(await copies.take("s1", WANTED)).toBeUndefined();
  second?.end("c2");
  await copies.stop();
  expect(removed.sort()).toEqual(["c1", "c2"]);
});

test.each([
  { what: "another size", wanted: { ...WANTED, resources: { ...resources, memoryMB: resources.memoryMB + 1 } } },
  { what: "another disk", wanted: { ...WANTED, resources: { ...resources, diskSizeMB: resources.diskSizeMB + 1 } } },
  { what: "another version of envd", wanted: { ...WANTED, runtime: "/runtime/2" } },
])("a copy of $what makes its own, and what was made ahead is removed", async ({ wanted }) => {
  const { copies, creation, removed } = world();
  copies.begin("s1", SOURCE, 1);
  (await creation(0))?.end("c1");
  await Promise.resolve();
  expect(await copies.take("s1", wanted)).toBeUndefined();
  await copies.stop();
  expect(removed).toEqual(["c1"]);
});

test("a copy makes its own where none can be made ahead, or making one fails", async () => {
  const { copies, creation } = world();
  copies.begin("s1", SOURCE, 2);
  const taken = copies.take("s1", WANTED);
  (await creation(0))?.fail();
  expect(await taken).toBeUndefined();
  copies.begin("s2", SOURCE, 2);
  (await creation(1))?.end();
  await copies.stop();
  expect(await copies.take("s2", WANTED)).toBeUndefined();
  expect(await copies.take("s3", WANTED)).toBeUndefined();
});

test("each gets its disk once that of the source is stored, before another container is made, and those with a disk are taken first", async () => {
  const { copies, creations, creation, disk, removed } = world();
  copies.begin("s1", SOURCE, 3);
  (await creation(0))?.end("c1");
  (await creation(1))?.end("c2");
  await creation(2);
  copies.stored("s1");
  (await creation(2))?.end("c3");
  (await disk(0))?.end(true);
  const second = await disk(1);
  expect([(await disk(0))?.id, second?.id]).toEqual(["c1", "c2"]);
  const taken = [await copies.take("s1", WANTED), await copies.take("s1", WANTED)];
  const last = copies.take("s1", WANTED);
  second?.end(true);
  expect([...taken, await last].map((one) => one?.containerId)).toEqual(["c1", "c3", "c2"]);
  await copies.stop();
  expect(creations).toHaveLength(3);
  expect(removed).toEqual([]);
});

test("a source that is stored when all containers are there gives them their disks, until a disk is too large", async () => {
  const { copies, creation, disks, disk, removed } = world();
  copies.begin("s1", SOURCE, 2);
  (await creation(0))?.end("c1");
  (await creation(1))?.end("c2");
  await new Promise((resolve) => setImmediate(resolve));
  copies.stored("s1");
  (await disk(0))?.end(false);
  await new Promise((resolve) => setImmediate(resolve));
  const taken = [await copies.take("s1", WANTED), await copies.take("s1", WANTED)];
  expect(taken.map((one) => one?.containerId ?? "").sort()).toEqual(["c1", "c2"]);
  expect(disks).toHaveLength(1);
  await copies.stop();
  expect(removed).toEqual([]);
});

test("a container whose disk cannot be made is removed, and its copy makes its own", async () => {
  const { copies, creation, disk, removed } = world();
  copies.begin("s1", SOURCE, 1);
  (await creation(0))?.end("c1");
  await new Promise((resolve) => setImmediate(resolve));
  copies.stored("s1");
  const first = await disk(0);
  const taken = copies.take("s1", WANTED);
  first?.fail();
  expect(await taken).toBeUndefined();
  await copies.stop();
  expect(removed).toEqual(["c1"]);
});

test("a container that gets its disk when its snapshot goes is removed", async () => {
  const { copies, creation, disks, disk, removed } = world();
  copies.begin("s1", SOURCE, 2);
  (await creation(0))?.end("c1");
  (await creation(1))?.end("c2");
  await new Promise((resolve) => setImmediate(resolve));
  copies.stored("s1");
  const first = await disk(0);
  copies.drop("s1");
  first?.end(true);
  await copies.stop();
  expect(removed.sort()).toEqual(["c1", "c2"]);
  expect(disks).toHaveLength(1);
});

test("a disk that is stored after the snapshot has gone changes nothing", async () => {
  const { copies, disks } = world();
  copies.stored("s1");
  await copies.stop();
  expect(disks).toEqual([]);
});

const STARTABLE = { ...SOURCE, startable: true };

async function waiting() {
  const made = world();
  made.copies.begin("s1", STARTABLE, 1);
  (await made.creation(0))?.end("c1");
  await new Promise((resolve) => setImmediate(resolve));
  made.copies.stored("s1");
  (await made.disk(0))?.end(true);
  await new Promise((resolve) => setImmediate(resolve));
  // While the source stands still none begins.
  expect(made.starts).toEqual([]);
  made.copies.runs("s1");
  const start = await made.start(0);
  await new Promise((resolve) => setImmediate(resolve));
  return { ...made, end: () => start?.end(), fail: () => start?.fail() };
}

const AT_FIRST = ["c1 joins /run/netns/n1", "c1 waits"];
const CALLED_OFF = ["c1 is called off", "network given back"];

test("a container with its disk begins its start, and its copy gets that start and its network", async () => {
  const { copies, removed, steps, end } = await waiting();
  expect(steps).toEqual(AT_FIRST);
  const taken = await copies.take("s1", WANTED);
  expect(taken?.start?.slot).toEqual({ netnsPath: "/run/netns/n1" });
  end();
  await taken?.start?.started;
  await copies.stop();
  expect([removed, steps]).toEqual([[], AT_FIRST]);
});

test.each([
  { what: "its snapshot goes", end: ({ copies }: Awaited<ReturnType<typeof waiting>>) => copies.drop("s1") },
  { what: "the agent ends", end: ({ copies }: Awaited<ReturnType<typeof waiting>>) => void copies.stop() },
])(
  "a start that waits is called off when $what: the notes go first, then the container, then the network",
  async ({ end }) => {
    const made = await waiting();
    end(made);
    await made.copies.stop();
    expect([made.removed, made.steps]).toEqual([["c1"], [...AT_FIRST, ...CALLED_OFF]]);
  },
);

test.each([
  { what: "failed", end: (made: Awaited<ReturnType<typeof waiting>>) => made.fail() },
  { what: "not waited for its memory", end: (made: Awaited<ReturnType<typeof waiting>>) => made.end() },
])("a copy does not get a container whose start has $what", async ({ end }) => {
  const made = await waiting();
  end(made);
  await new Promise((resolve) => setImmediate(resolve));
  expect(await made.copies.take("s1", WANTED)).toBeUndefined();
  await made.copies.stop();
  expect([made.removed, made.steps]).toEqual([["c1"], [...AT_FIRST, ...CALLED_OFF]]);
});

test("a copy without memory, or with volumes, does not get a start that waits for memory", async () => {
  const { copies, removed, steps } = await waiting();
  expect(await copies.take("s1", { ...WANTED, startable: false })).toBeUndefined();
  await copies.stop();
  expect([removed, steps]).toEqual([["c1"], [...AT_FIRST, ...CALLED_OFF]]);
});

test("what was taken and not used is ended with its network", async () => {
  const { copies, removed, steps } = await waiting();
  const taken = await copies.take("s1", WANTED);
  if (taken === undefined) throw new Error("nothing to take");
  await copies.discard(taken);
  expect([removed, steps]).toEqual([["c1"], [...AT_FIRST, ...CALLED_OFF]]);
});

test("without memory to come no start begins", async () => {
  const { copies, creation, disk, starts, removed } = world();
  copies.begin("s1", SOURCE, 1);
  (await creation(0))?.end("c1");
  await new Promise((resolve) => setImmediate(resolve));
  copies.stored("s1");
  (await disk(0))?.end(true);
  copies.runs("s1");
  await new Promise((resolve) => setImmediate(resolve));
  expect((await copies.take("s1", WANTED))?.containerId).toBe("c1");
  await copies.stop();
  expect([starts, removed]).toEqual([[], []]);
});

test("where processors are idle a start begins while the source still stands", async () => {
  const { copies, creation, disk, start, steps } = world(true);
  copies.begin("s1", STARTABLE, 1);
  (await creation(0))?.end("c1");
  await new Promise((resolve) => setImmediate(resolve));
  copies.stored("s1");
  (await disk(0))?.end(true);
  expect((await start(0))?.id).toBe("c1");
  await copies.stop();
  expect(steps).toEqual([...AT_FIRST, ...CALLED_OFF]);
});
