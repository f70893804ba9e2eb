/** Containers that are made for the copies of a fork before its source is stored: each goes to one copy, or is removed. */

import { expect, test } from "vitest";
import { createCopiesAhead } from "../../../../agent/snapshots/take/copies-ahead.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const SOURCE = { build, resources, runtime: "/runtime/1" };
const WANTED = { resources, runtime: "/runtime/1" };

/** Each creation ends when the test says so. */
function world() {
  const creations: { readonly image: string; readonly end: (id?: string) => void; readonly fail: () => void }[] = [];
  const disks: { readonly id: string; readonly end: (made: boolean) => void; readonly fail: () => void }[] = [];
  const removed: string[] = [];
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
        remove: (id: string) => Promise.resolve(void removed.push(id)),
      },
      runtime: (directory = "") => Promise.resolve({ directory, command: ["envd"] }),
    } as never,
    network: { plan: { gateway: "10.0.0.1" } } as never,
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
  return { copies, creations, creation, disks, disk, removed };
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
