/** The container engine that chooses processors, on an engine in memory. */

import { expect, test } from "vitest";
import type { ContainerSpec, Containers } from "../../../../agent/containers/containers.ts";
import { createCpuSets } from "../../../../agent/cpu-sets/cpu-sets.ts";
import { withCpuSets } from "../../../../agent/cpu-sets/with-cpu-sets.ts";
import { build } from "../../../support/fakes/agent-parts.ts";

const spec = (cpuCount: number): ContainerSpec => ({
  name: "svc-x",
  build,
  resources: { cpuCount, memoryMB: 128, diskSizeMB: 0 },
  command: [],
  env: [],
  runtimeDirectory: "/r",
  resolver: "10.0.0.1",
});

function world(earlier: Readonly<Record<string, { cpus: string; running: boolean }>> = {}) {
  const made: (string | undefined)[] = [];
  const state = { full: false, described: true };
  const engine: Partial<Containers> = {
    create({ cpus }) {
      if (state.full) return Promise.reject(new Error("full"));
      return Promise.resolve(`c${made.push(cpus)}`);
    },
    start: () => (state.full ? Promise.reject(new Error("full")) : Promise.resolve()),
    remove: () => Promise.resolve(),
    list: () => Promise.resolve(Object.entries(earlier).map(([id, { running }]) => ({ id, name: id, running }))),
    inspect: (id) =>
      state.described
        ? Promise.resolve(
            earlier[id] && { ...earlier[id], pid: 1, exitCode: 0, oomKilled: false, upperDirectory: undefined },
          )
        : Promise.reject(new Error("its disk is not mounted")),
    watch: (_since, onEvent) => Promise.resolve(onEvent({ kind: "died", id: "c1", exitCode: 0 })),
  };
  return { made, state, containers: withCpuSets(engine as Containers, createCpuSets([0, 1])) };
}

test("each container is created with its processors; one as large as the machine without", async () => {
  const { made, containers } = world();
  for (const count of [1, 1, 2]) await containers.create(spec(count));
  expect(made).toEqual(["0", "1", undefined]);
});

test("processors are free again after a failed creation, an end and a removal; a resumed container has them again", async () => {
  const { made, state, containers } = world();
  state.full = true;
  await expect(containers.create(spec(1))).rejects.toThrow("full");
  state.full = false;
  await containers.create(spec(1));
  await containers.watch(0, () => undefined, new AbortController().signal);
  await containers.create(spec(1));
  await containers.start("c1");
  await containers.create(spec(1));
  await containers.remove("c3");
  await containers.create(spec(1));
  expect(made).toEqual(["0", "0", "1", "1"]);
});

test("a container that could not be started does not count", async () => {
  const { made, state, containers } = world();
  const id = await containers.create(spec(1));
  state.full = true;
  await expect(containers.start(id)).rejects.toThrow("full");
  state.full = false;
  await containers.create(spec(1));
  expect(made).toEqual(["0", "0"]);
});

test("containers of an earlier agent process count from the first list on; stopped ones do not", async () => {
  const { made, containers } = world({ a: { cpus: "0", running: true }, paused: { cpus: "1", running: false } });
  await containers.list();
  await containers.create(spec(1));
  expect(made).toEqual(["1"]);
});

test("a container that Docker cannot describe, as after a reboot, counts from the list after that", async () => {
  const { made, state, containers } = world({ earlier: { cpus: "0", running: true } });
  state.described = false;
  expect(await containers.list()).toHaveLength(1);
  state.described = true;
  await containers.list();
  await containers.create(spec(1));
  expect(made).toEqual(["1"]);
});
