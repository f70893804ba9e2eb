/** The container engine whose containers have disks of their own, on an engine and disks in memory. */

import { describe, expect, test } from "vitest";
import type { ContainerSpec, Containers } from "../../../../agent/containers/containers.ts";
import type { ImageNames } from "../../../../agent/containers/docker-images.ts";
import type { Disk, Disks } from "../../../../agent/sandbox-disks/disks.ts";
import { withDisks } from "../../../../agent/sandbox-disks/with-disks.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const REPOSITORY = "svc/disk-0";

function world(changes: { unusable?: string; damaged?: boolean } = {}) {
  const state = {
    made: [] as Disk[],
    images: [] as string[],
    removed: [] as string[],
    listed: [] as string[],
    disks: new Set<string>(),
    stored: new Set<string>(),
    tags: [] as string[],
    labelled: [] as { id: string; snapshotId: string; createdAt: number; names: string[] }[],
    bytes: 1_000_000,
    now: 1_000,
  };
  const engine: Partial<Containers & ImageNames> = {
    create(spec) {
      state.images.push(spec.build.image);
      return Promise.resolve("c1");
    },
    inspect: (id) =>
      Promise.resolve(
        id.startsWith("c")
          ? { running: true, pid: 7, exitCode: 0, oomKilled: false, upperDirectory: "/docker/layer/diff", cpus: "" }
          : undefined,
      ),
    remove: (id) => Promise.resolve(void state.removed.push(`container ${id}`)),
    list: () => Promise.resolve(state.listed.map((id) => ({ id, name: id, running: true }))),
    facts: () => Promise.resolve({ storageDriver: "overlay2", diskLimit: false, diskDetail: "measured" } as never),
    tagsOf: () => Promise.resolve(state.tags),
    snapshotImages: () => Promise.resolve(state.labelled),
  };
  const disks: Partial<Disks> = {
    root: "/disks",
    unusable: () => Promise.resolve(changes.unusable),
    has: (id) => state.disks.has(id),
    storedBytes: () => Promise.resolve(state.bytes),
    hasStored: (id) => state.stored.has(id),
    hasDraft: () => false,
    layer: (id) => `/disks/${id}/layer`,
    make: (disk) => Promise.resolve(void state.made.push(disk)),
    lending: (_id, work) => work(),
    mount: () =>
      changes.damaged === true ? Promise.reject(new AppError("snapshot_corrupt", "damaged")) : Promise.resolve(),
    remove: (id) => Promise.resolve(void state.removed.push(`disk ${id}`)),
    list: () =>
      Promise.resolve({
        containerIds: [...state.disks],
        stored: [...state.stored].map((id) => ({ id, changedAt: 5 })),
      }),
  };
  const containers = withDisks({
    engine: engine as Containers & ImageNames,
    disks: disks as Disks,
    repository: REPOSITORY,
    now: () => state.now,
    log: createLog({ component: "test", level: "silent" }),
  });
  return { state, containers, engine, disks };
}

const spec = (image: string): ContainerSpec => ({
  name: "n",
  build: { ...build, image },
  resources,
  command: [],
  env: [],
  runtimeDirectory: "/runtime",
  resolver: "127.0.0.1",
});

describe("a new container", () => {
  test("gets an empty disk of the size of its template", async () => {
    const { state, containers } = world();
    await containers.create(spec("app"));
    expect(state.images).toEqual(["app"]);
    expect(state.made).toEqual([
      { containerId: "c1", layer: "/docker/layer", sizeMb: resources.diskSizeMB, from: undefined },
    ]);
  });

  test("of a snapshot with a stored disk gets a copy of it, on the image that the disk was made on", async () => {
    const { state, containers } = world();
    state.stored.add("s1");
    await containers.create(spec("svc/snapshot:s1"));
    expect(state.images).toEqual([`${REPOSITORY}:s1`]);
    expect(state.made).toMatchObject([{ from: "s1" }]);
  });

  test("of a copy is made before its disk is stored, on the image below, and gets the disk afterwards", async () => {
    const { state, containers } = world();
    const made = await containers.createAhead(spec("svc/snapshot:s1"));
    expect([made, state.images, state.made]).toEqual(["c1", [`${REPOSITORY}:s1`], []]);
    const copy = { ...spec("svc/snapshot:s1"), made: "c1" };
    await expect(containers.create(copy)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    state.stored.add("s1");
    expect(await containers.create(copy)).toBe("c1");
    expect(state.images).toHaveLength(1);
    expect(state.made).toMatchObject([{ containerId: "c1", from: "s1" }]);
  });

  test("of a copy has its disk ahead, and then is not given another one", async () => {
    const { state, containers } = world();
    const of = spec("svc/snapshot:s1");
    await containers.createAhead(of);
    expect(await containers.furnishAhead("c1", of)).toBe(true);
    expect(state.made).toMatchObject([{ containerId: "c1", from: "s1", layer: "/docker/layer" }]);
    state.stored.add("s1");
    expect(await containers.create({ ...of, made: "c1" })).toBe("c1");
    expect(state.made).toHaveLength(1);
  });

  test("of a copy with a large disk gets it at its start", async () => {
    const { state, containers } = world();
    state.bytes = 65 * 1024 * 1024;
    const of = spec("svc/snapshot:s1");
    await containers.createAhead(of);
    expect(await containers.furnishAhead("c1", of)).toBe(false);
    expect(state.made).toEqual([]);
    state.stored.add("s1");
    await containers.create({ ...of, made: "c1" });
    expect(state.made).toHaveLength(1);
  });

  test("of no snapshot, or without disks of their own, is not made ahead", async () => {
    expect(await world().containers.createAhead(spec("app"))).toBeUndefined();
    expect(
      await world({ unusable: "no loop devices" }).containers.createAhead(spec("svc/snapshot:s1")),
    ).toBeUndefined();
  });

  test("of a snapshot that was stored as an image of Docker is made of that image", async () => {
    const { state, containers } = world();
    await containers.create(spec("svc/snapshot:old"));
    expect(state.images).toEqual(["svc/snapshot:old"]);
    expect(state.made).toMatchObject([{ from: undefined }]);
  });

  test("has no disk where the machine cannot make one, and the facts say why", async () => {
    const { state, containers } = world({ unusable: "no loop devices" });
    await containers.create(spec("app"));
    expect([state.images, state.made]).toEqual([["app"], []]);
    expect(await containers.facts()).toMatchObject({
      diskLimit: false,
      diskDetail: "measured; sandboxes have no disk image of their own: no loop devices",
    });
    state.stored.add("s1");
    await expect(containers.create(spec("svc/snapshot:s1"))).rejects.toMatchObject({ code: "unavailable" });
  });
});

test("a container whose disk cannot be mounted does not run, and its start gives the reason", async () => {
  const { state, containers } = world({ damaged: true });
  state.disks.add("c1");
  expect(await containers.inspect("c1")).toMatchObject({ running: false, pid: 0 });
  await expect(containers.start("c1")).rejects.toMatchObject({ code: "snapshot_corrupt" });
});

test("a disk is removed only when two rounds find no container, no record names it, and Docker does not know it", async () => {
  const { state, containers } = world();
  for (const id of ["c1", "recorded", "c-unlisted", "gone"]) state.disks.add(id);
  state.listed = ["c1"];
  const owned = new Set(["recorded"]);
  await containers.removeOrphans(owned);
  expect(state.removed).toEqual([]);
  await containers.removeOrphans(owned);
  expect(state.removed).toEqual(["disk gone"]);
});

test("garbage has stored disks and names without one, and never the image below a stored disk", async () => {
  const { state, containers } = world();
  state.stored.add("s1");
  state.tags = ["s1", "left"];
  state.labelled = [
    { id: "base", snapshotId: "s0", createdAt: 1, names: ["svc/snapshot:s0", `${REPOSITORY}:s1`] },
    { id: "old", snapshotId: "s2", createdAt: 2, names: ["svc/snapshot:s2"] },
  ];
  const found = await containers.snapshotImages();
  expect(found.map(({ id, createdAt }) => [id, createdAt])).toEqual([
    ["old", 2],
    ["svc/snapshot:s1", 5],
    ["svc/snapshot:left", 1_000],
  ]);
  state.now = 2_000;
  expect((await containers.snapshotImages()).at(-1)).toMatchObject({ createdAt: 1_000 });
});

test("a copy that is gone before it was durable fails the snapshot", async () => {
  const { state, containers } = world();
  state.disks.add("c1");
  await expect(containers.keep("c1", "svc/snapshot:s1", true)).rejects.toMatchObject({ code: "snapshot_failed" });
});

describe("the copy of a disk ahead of a snapshot", () => {
  function copying() {
    const { containers, state, engine, disks } = world();
    state.disks.add("c1");
    const seen: string[] = [];
    const ends: { tag?: (error?: Error) => void; copy?: () => void } = {};
    engine.tagImageOf = (_id, name) =>
      new Promise((resolve, reject) => {
        seen.push(`tag ${name}`);
        ends.tag = (error) => (error === undefined ? resolve() : reject(error));
      });
    disks.copyAhead = (id, snapshotId) =>
      new Promise((resolve) => {
        seen.push(`copy ${id} to ${snapshotId}`);
        ends.copy = resolve;
      });
    const over = { is: false };
    const copy = containers.copyAhead("c1", "svc/snapshot:s1").finally(() => {
      over.is = true;
    });
    return { seen, ends, over, copy };
  }

  test("is taken while the engine names the image below it", async () => {
    const { seen, ends, copy } = copying();
    expect(seen).toEqual([`tag ${REPOSITORY}:s1`, "copy c1 to s1"]);
    ends.tag?.();
    ends.copy?.();
    await copy;
  });

  test("has ended when a failure of that name is reported, so that its caller can remove it", async () => {
    const { ends, over, copy } = copying();
    ends.tag?.(new Error("no such image"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(over.is).toBe(false);
    ends.copy?.();
    await expect(copy).rejects.toThrow("no such image");
  });
});
