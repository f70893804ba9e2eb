/** Creates with a size, and without memory, on fake agents: what the node is asked, and what every read shows. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { maxSandboxCpu: 8, maxSandboxMemoryMb: 4_096 } });
});
afterAll(() => cluster.stop());

const onStart = (_start: object, run: () => void) => run();
beforeEach(async () => {
  Object.assign(cluster.agent, { onStart, load: {} });
  cluster.agent.starts.length = 0;
  await cluster.agent.beat();
});

const { create, read, pause, connect, post } = sandboxesOn(() => cluster);
const refused = (body: object, version = "/v2") =>
  cluster.ask("POST", `${version}/sandboxes`, { body: { templateID: "base", ...body } });

const SIZE = { cpuCount: 4, memoryMB: 2_048 };
const asked = () => cluster.agent.starts.at(-1)?.body;
const shown = async (id: string): Promise<object[]> => {
  const list = (await cluster.ask("GET", "/v2/sandboxes")).body as SandboxDetail[];
  const running = (await cluster.ask("GET", "/sandboxes")).body as SandboxDetail[];
  return [await read(id), ...[...list, ...running].filter(({ sandboxID }) => sandboxID === id)].map(
    ({ cpuCount, memoryMB, diskSizeMB }) => ({ cpuCount, memoryMB, diskSizeMB }),
  );
};

test.each(["", "/v2"] as const)(
  "a create on '%s/sandboxes' may name its size, which the node and every read have",
  async (version) => {
    const { sandboxID } = await create(SIZE, version);
    const whole = { ...SIZE, diskSizeMB: 10_240 };
    expect(asked()?.resources).toEqual(whole);
    expect(await shown(sandboxID)).toEqual([whole, whole, whole]);
  },
);

test("a size of one kind leaves the other one to the template, and null is as left out", async () => {
  await create({ cpuCount: 1 });
  expect(asked()?.resources).toMatchObject({ cpuCount: 1, memoryMB: 1_024 });
  await create({ memoryMB: 128, cpuCount: null });
  expect(asked()?.resources).toMatchObject({ cpuCount: 2, memoryMB: 128 });
});

test("the size stays through pause, resume, fork and snapshot, and a snapshot's sandbox may have another one", async () => {
  const { sandboxID } = await create(SIZE);
  expect((await pause(sandboxID)).status).toBe(204);
  expect(await read(sandboxID)).toMatchObject({ state: "paused", ...SIZE });
  expect((await connect(sandboxID)).status).toBe(201);
  expect(asked()).toMatchObject({ resources: SIZE, origin: { is: "paused" } });
  const [fork] = (await post(sandboxID, "fork", {})).body as { sandbox: { sandboxID: string } }[];
  expect(asked()).toMatchObject({ resources: SIZE, origin: { is: "snapshot", memory: true } });
  expect(await read(fork?.sandbox.sandboxID ?? "")).toMatchObject(SIZE);
  const { snapshotID } = (await post(sandboxID, "snapshots", {})).body as { snapshotID: string };
  await create({ templateID: snapshotID });
  expect(asked()).toMatchObject({ resources: SIZE, origin: { memory: true } });
  const other = await create({ templateID: snapshotID, cpuCount: 1, memoryMB: 4_096, memory: false });
  expect(asked()).toMatchObject({ resources: { cpuCount: 1, memoryMB: 4_096 }, origin: { memory: false } });
  expect(await read(other.sandboxID)).toMatchObject({ cpuCount: 1, memoryMB: 4_096 });
});

test("a node that finds the memory too small for the snapshot's is believed: 400 with its reason, and asked once", async () => {
  const message = "memory of 512 MiB is too small";
  cluster.agent.onStart = () => {
    throw new AppError("failed_precondition", message);
  };
  const answer = await refused({ memoryMB: 512 });
  expect([answer.status, answer.body]).toEqual([400, expect.objectContaining({ code: 400, message })]);
  expect(cluster.agent.starts).toHaveLength(1);
});

test("a create with memory false starts a template that has no memory as always", async () => {
  await create({ memory: false });
  expect(asked()?.origin).toBeUndefined();
});

describe("a create is refused", () => {
  test.each([
    [{ cpuCount: 9 }, 403, "body field 'cpuCount': 9 CPU cores is more than a sandbox of this project may have"],
    [{ memoryMB: 4_097 }, 403, "body field 'memoryMB': 4097 MiB is more than a sandbox of this project may have"],
    [{ cpuCount: 0 }, 400, "body field 'cpuCount'"],
    [{ cpuCount: 1.5 }, 400, "body field 'cpuCount'"],
    [{ cpuCount: "2" }, 400, "body field 'cpuCount'"],
    [{ memoryMB: 127 }, 400, "body field 'memoryMB'"],
    [{ memory: 512 }, 400, "body field 'memory' must be true or false: whether stored memory is restored"],
    [{ count: 0 }, 400, "body field 'count'"],
  ])("with %j: %i", async (body, status, message) => {
    for (const version of ["", "/v2"]) {
      const answer = await refused(body, version);
      expect(answer.status, answer.text).toBe(status);
      expect((answer.body as { message: string }).message).toContain(message);
    }
    expect(cluster.agent.starts).toEqual([]);
  });

  test("for more than any node has, with what nodes have", async () => {
    cluster.agent.load = { cpuCount: 2, memoryTotalBytes: 2_000 * 2 ** 20 };
    await cluster.agent.beat();
    for (const body of [{ cpuCount: 3 }, { memoryMB: 2_001 }]) {
      const answer = await refused(body);
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({
        error_code: "no_compatible_node",
        message: expect.stringMatching(/nodes have up to 2 cores and up to 2000 MiB, ask for less/) as string,
      });
    }
    // A template's own size is a ceiling.
    const empty = { allocatedCpu: 0, allocatedMemoryBytes: 0 };
    cluster.agent.load = { ...empty, cpuCount: 1, memoryTotalBytes: 512 * 2 ** 20 };
    await cluster.agent.beat();
    await create();
    await create({ cpuCount: 2, memoryMB: 1_024 });
  });
});

test("a create with the count 1 starts one sandbox, and placement counts the named size", async () => {
  cluster.agent.load = { cpuCount: 8, allocatedCpu: 8 * 50 - 7, memoryTotalBytes: 2 ** 34 };
  await cluster.agent.beat();
  const answer = await refused({ cpuCount: 8, count: 1 });
  expect(answer.body).toMatchObject({ error_code: "cluster_at_capacity" });
  await create({ cpuCount: 7, count: 1 });
  expect(asked()?.resources.cpuCount).toBe(7);
});
