import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Candidate, Demand } from "../../../../orchestrator/nodes/placement/candidate.ts";
import { choose, explain } from "../../../../orchestrator/nodes/placement/choose.ts";
import { score } from "../../../../orchestrator/nodes/placement/score.ts";

const GIB = 1024 ** 3;
const policy = { cpuOvercommit: 4, memoryOvercommit: 2, diskOvercommit: 3 };

function node(over: Partial<Candidate> = {}): Candidate {
  return {
    id: "n1",
    status: "ready",
    labels: {},
    cpuCount: 4,
    cpuPercent: 0,
    memoryTotalBytes: 8 * GIB,
    allocatedCpu: 0,
    allocatedMemoryBytes: 0,
    sandboxCount: 0,
    maxSandboxes: 100,
    disk: undefined,
    ...over,
  };
}

function demand(over: Partial<Demand> = {}): Demand {
  return { cpuCount: 2, memoryBytes: GIB, diskBytes: 10 * GIB, labels: {}, exclude: new Map(), ...over };
}

/** What is free above the reserve and what is used, 50 GiB together, may be promised three times. */
const disk = { promisedBytes: 0, usedBytes: 20 * GIB, freeBytes: 40 * GIB, reserveBytes: 10 * GIB, short: false };

const first = () => 0;

describe("why there is no node", () => {
  test.each<[string, Candidate[], Demand, object]>([
    ["none registered", [], demand(), { is: "none", reason: "no node has registered" }],
    [
      "labels",
      [node()],
      demand({ labels: { region: "eu" } }),
      { is: "none", reason: "no node has all the labels that the project's nodes must have (region=eu)" },
    ],
    [
      "another region",
      [node({ labels: { region: "US" } })],
      demand({ region: "EU" }),
      { is: "none", reason: "no node that could run it is in region EU" },
    ],
    ["too large", [node()], demand({ cpuCount: 17 }), { is: "none", reason: "no node is large enough for 17 cores" }],
    [
      "promised enough cores without having them",
      [node(), node({ memoryTotalBytes: 64 * GIB })],
      demand({ cpuCount: 5, least: { cpuCount: 5, memoryBytes: 0 } }),
      {
        is: "none",
        reason:
          "no node is large enough for 5 cores and 1024 MiB of memory: nodes have up to 4 cores and up to 65536 MiB, ask for less (node n1 has 4 cores; node n1 has 4 cores)",
      },
    ],
    [
      "cores and memory on different nodes",
      [node({ cpuCount: 8 }), node({ memoryTotalBytes: 16 * GIB })],
      demand({ cpuCount: 8, memoryBytes: 16 * GIB, least: { cpuCount: 8, memoryBytes: 16 * GIB } }),
      { is: "none", reason: expect.stringMatching(/^no node is large enough for 8 cores and 16384 MiB/) },
    ],
    ["draining", [node({ status: "draining" })], demand(), { is: "none", reason: "no node is ready (draining)" }],
    [
      "excluded",
      [node()],
      demand({ exclude: new Map([["n1", "failed to start it"]]) }),
      { is: "none", reason: "no node is ready (ready)" },
    ],
    ["expected back", [node({ status: "connecting" })], demand(), { is: "connecting" }],
    [
      "full of cpu",
      [node({ allocatedCpu: 15 })],
      demand(),
      { is: "full", of: "other", reason: "no node has the CPU and memory left" },
    ],
    [
      "full of memory",
      [node({ allocatedMemoryBytes: 16 * GIB })],
      demand(),
      { is: "full", of: "other", reason: "no node has the CPU and memory left" },
    ],
    [
      "full of sandboxes",
      [node({ sandboxCount: 100 })],
      demand(),
      { is: "full", of: "other", reason: "every node is at its limit of 100 sandboxes" },
    ],
    [
      "short of disk",
      [node({ disk: { ...disk, short: true } })],
      demand({ diskBytes: 0 }),
      { is: "full", of: "disk", reason: expect.stringMatching(/less room than its reserve \(SVC_DISK_RESERVE_MB\)/) },
    ],
    [
      "promised",
      [node({ disk: { ...disk, promisedBytes: 141 * GIB } }), node({ disk: { ...disk, short: true } })],
      demand(),
      { is: "full", of: "disk", reason: expect.stringMatching(/promise 10240 MiB more .*SVC_NODE_DISK_OVERCOMMIT/) },
    ],
    [
      "one short of disk, the other full of memory",
      [node({ disk: { ...disk, short: true } }), node({ allocatedMemoryBytes: 16 * GIB })],
      demand(),
      {
        is: "full",
        of: "other",
        reason: expect.stringMatching(/^no node has the CPU, memory and disk left \(node n1 has less disk/),
      },
    ],
    [
      "never reported",
      [node({ cpuCount: 0 })],
      demand(),
      { is: "none", reason: "no node is large enough for 2 cores" },
    ],
  ])("%s: no node is chosen, and the result says why", (_name, nodes, wanted, expected) => {
    expect(choose(nodes, wanted, policy, first)).toEqual(expected);
  });
});

test("a region limits the nodes to its own and to those without a region; without one, every node is taken", () => {
  const nodes = [
    node({ id: "us", labels: { region: "US" } }),
    node({ id: "eu", labels: { region: "eu" }, allocatedCpu: 1 }),
    node({ id: "any", allocatedCpu: 2 }),
  ];
  const chosen = (region: string | undefined, of = nodes) => choose(of, demand({ region }), policy, first);
  expect(chosen("EU")).toEqual({ is: "node", id: "eu" });
  expect(chosen("APAC")).toEqual({ is: "node", id: "any" });
  expect(chosen(undefined)).toEqual({ is: "node", id: "us" });
});

test("the emptier and the less busy of two nodes is taken", () => {
  const nodes = [node({ id: "full", allocatedCpu: 8 }), node({ id: "empty" }), node({ id: "busy", cpuPercent: 90 })];
  expect(choose(nodes, demand(), policy, first)).toEqual({ is: "node", id: "empty" });
  expect(score(node({ cpuCount: 0 }), demand(), policy)).toBe(Number.MAX_VALUE);
});

test("a named size is placed on a node that has it, a template's size on one that may promise it", () => {
  const nodes = [node({ id: "small" }), node({ id: "large", cpuCount: 8, allocatedCpu: 20 })];
  const six = { cpuCount: 6, memoryBytes: GIB };
  expect(choose(nodes, demand({ ...six, least: six }), policy, first)).toEqual({ is: "node", id: "large" });
  expect(choose(nodes, demand(six), policy, first)).toEqual({ is: "node", id: "small" });
  const memory = { cpuCount: 1, memoryBytes: 9 * GIB };
  expect(choose([node()], demand(memory), policy, first)).toEqual({ is: "node", id: "n1" });
  expect(choose([node()], demand({ ...memory, least: memory }), policy, first)).toMatchObject({ is: "none" });
});

test("a node whose disk is short or promised often enough gets nothing while another has room", () => {
  const full = { ...disk, promisedBytes: 140 * GIB };
  const nodes = [
    node({ id: "short", disk: { ...disk, freeBytes: 9 * GIB, short: true } }),
    node({ id: "promised", disk: full }),
  ];
  const sized = (diskBytes: number, of = nodes) => choose(of, demand({ diskBytes }), policy, first);
  expect(sized(10 * GIB)).toEqual({ is: "node", id: "promised" });
  expect(sized(10 * GIB + 1)).toMatchObject({ is: "full", of: "disk" });
  expect(sized(10 * GIB, [...nodes, node({ id: "roomy", disk, allocatedCpu: 10 })])).toEqual({
    is: "node",
    id: "roomy",
  });
  // A disk without a limit promises nothing.
  expect(sized(0)).toEqual({ is: "node", id: "promised" });
  expect(choose([node({ disk: undefined })], demand(), policy, first)).toMatchObject({ is: "node" });
});

test("a chosen node is always ready, not excluded, labelled and has room", () => {
  const candidate = fc.record({
    id: fc.uuid(),
    status: fc.constantFrom("ready" as const, "draining" as const, "unhealthy" as const),
    cpuCount: fc.integer({ min: 0, max: 64 }),
    cpuPercent: fc.integer({ min: 0, max: 100 }),
    allocatedCpu: fc.integer({ min: 0, max: 300 }),
    sandboxCount: fc.integer({ min: 0, max: 4 }),
    maxSandboxes: fc.constant(3),
  });
  fc.assert(
    fc.property(fc.array(candidate, { maxLength: 12 }), fc.integer({ min: 0, max: 99 }), (given, seed) => {
      const nodes = given.map((each) => node(each));
      const choice = choose(nodes, demand(), policy, () => seed / 100);
      if (choice.is !== "node") {
        const fits = nodes.some(
          (each) => each.status === "ready" && each.allocatedCpu + 2 <= each.cpuCount * 4 && each.sandboxCount < 3,
        );
        expect(fits).toBe(false);
        return;
      }
      const chosen = nodes.find(({ id }) => id === choice.id);
      expect(chosen?.status).toBe("ready");
      expect((chosen?.allocatedCpu ?? 0) + 2).toBeLessThanOrEqual((chosen?.cpuCount ?? 0) * 4);
      expect(chosen?.sandboxCount).toBeLessThan(3);
    }),
  );
});

test("a choice among a thousand nodes takes less than 50 ms of a processor", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => node({ id: `n${index}`, allocatedCpu: index % 14 }));
  const before = process.cpuUsage();
  for (let index = 0; index < 100; index++) choose(nodes, demand(), policy, Math.random);
  expect(process.cpuUsage(before).user / 1_000 / 100).toBeLessThan(50);
});

test("a start from stored memory takes a node that can restore it, and without one the reason and the way out are named", () => {
  const broken = node({ id: "a", noMemory: "CRIU is not installed" });
  const wanted = demand({ memory: true });
  expect(choose([broken, node({ id: "b" })], wanted, policy, first)).toEqual({ is: "node", id: "b" });
  expect(choose([broken], demand(), policy, first)).toEqual({ is: "node", id: "a" });
  const none = choose([broken], wanted, policy, first);
  expect(none).toMatchObject({ is: "none", reason: expect.stringContaining("node a: CRIU is not installed") });
  expect(none).toMatchObject({ reason: expect.stringContaining("memory: false") });
});

test("a sandbox that needs the network passes over a node that refuses such ones, and one that needs none does not", () => {
  const cut = node({ id: "a", noNetwork: "table inet site, chain cut: policy drop" });
  expect(choose([cut, node({ id: "b" })], demand({ network: true }), policy, first)).toEqual({ is: "node", id: "b" });
  expect(choose([cut], demand({ network: false }), policy, first)).toEqual({ is: "node", id: "a" });
  expect(choose([cut], demand({ network: true }), policy, first)).toMatchObject({
    is: "none",
    reason: expect.stringContaining("table inet site, chain cut: policy drop"),
  });
});

test("an error names four nodes with their reasons, counts all others by reason, and speaks of none that could never run it", () => {
  const nodes = [
    node({ id: "a", status: "draining" }),
    node({ id: "b", allocatedCpu: 15 }),
    node({ id: "c", sandboxCount: 100 }),
    node({ id: "d", labels: { region: "us" } }),
    node({ id: "e", disk: { ...disk, short: true } }),
    node({ id: "f", labels: { region: "eu" }, cpuCount: 0 }),
  ];
  expect(choose(nodes.slice(0, 3), demand(), policy, first)).toEqual({
    is: "full",
    of: "other",
    reason:
      "no node has the CPU and memory left (node a is draining; node b has promised 15 of 16 cores; node c is at its limit of 100 sandboxes)",
  });
  expect(choose(nodes, demand({ region: "eu" }), policy, first)).toMatchObject({
    is: "none",
    reason: expect.stringMatching(
      /node a has no region, and other nodes are in eu; .*; node d is in region us; and 2 nodes more: 1 without a region, 1 too small\)$/,
    ),
  });
  const home = { nodeId: "a", has: "the snapshot" };
  expect(choose(nodes, demand({ home }), policy, first)).toEqual({ is: "none", reason: "no node is ready (draining)" });
  expect(choose(nodes.slice(1), demand({ home }), policy, first)).toEqual({
    is: "none",
    reason: "node a, which alone has the snapshot, is not known",
  });
});

test("of two nodes the one with the scarcest resource less used is taken, and presence of image and container decides between equals", () => {
  const build = { id: "b", nodeId: "image" };
  const best = (nodes: Candidate[]) => choose(nodes, demand({ build }), policy, first);
  // Cores are free on both, and memory on one.
  expect(best([node({ id: "image", allocatedMemoryBytes: 14 * GIB }), node({ id: "x" })])).toEqual({
    is: "node",
    id: "x",
  });
  expect(best([node({ id: "x" }), node({ id: "image" })])).toEqual({ is: "node", id: "image" });
  const pools = [{ buildId: "b", ready: 1 }];
  expect(best([node({ id: "image" }), node({ id: "pooled", pools })])).toEqual({ is: "node", id: "pooled" });
  expect(best([node({ id: "image" }), node({ id: "drained", pools: [{ buildId: "b", ready: 0 }] })])).toEqual({
    is: "node",
    id: "image",
  });
});

test("all nodes are explained, the best first, each that is passed over with its reason", () => {
  const nodes = [
    node({ id: "draining", status: "draining" }),
    node({ id: "busy", allocatedCpu: 8 }),
    node({ id: "empty" }),
  ];
  const told = explain(nodes, demand(), policy).map(({ node: { id }, misfit }) => [id, misfit?.because]);
  expect(told).toEqual([
    ["empty", undefined],
    ["busy", undefined],
    ["draining", "is draining"],
  ]);
});
