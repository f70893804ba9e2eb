import { describe, expect, test } from "vitest";
import { createBaseTemplates, nearFirst } from "../../../../orchestrator/builds/base-template.ts";
import type { Images } from "../../../../orchestrator/lifecycle/start/images.ts";
import type { Candidate } from "../../../../orchestrator/nodes/placement/candidate.ts";
import { choose } from "../../../../orchestrator/nodes/placement/choose.ts";
import type { Build } from "../../../../orchestrator/store/builds/record.ts";
import { AppError } from "../../../../shared/http/errors.ts";

const PARENT = { id: "parent", templateId: "tpl", kind: "template", nodeId: "n1", image: "svc/build:parent" } as const;
const CHILD = { id: "child", parentBuildId: "parent", nodeId: "n2" } as unknown as Build & { readonly nodeId: string };

interface Given {
  readonly parent?: Partial<Pick<Build, "id" | "kind" | "nodeId">> | undefined;
  readonly images?: Partial<Images>;
  /** Nodes that report to have the image. */
  readonly holding?: readonly string[];
}

function basesOf(given: Given) {
  const clock = { now: 0 };
  const asked: string[] = [];
  const parent = "parent" in given ? given.parent : PARENT;
  const images = {
    holders: () => new Set(given.holding),
    reach: () => Promise.resolve({ inStore: false }),
    refusals: () => [],
    fetch: (nodeId: string) => Promise.resolve(void asked.push(nodeId)),
    ...given.images,
  } as unknown as Images;
  const bases = createBaseTemplates({
    templates: { build: () => Promise.resolve(parent as Build | undefined) },
    nodes: { holding: () => [...(given.holding ?? [])] },
    images,
    now: () => clock.now,
  });
  return { bases, clock, asked };
}

describe("the nodes that may build on top of a template", () => {
  const none = new Map<string, string>();
  const rows: readonly { named: string; given: Given; demand: unknown }[] = [
    { named: "that is in no record: none, because it was deleted", given: { parent: undefined }, demand: undefined },
    {
      named: "that every node has: all",
      given: { parent: { ...PARENT, nodeId: undefined } },
      demand: { lacking: none },
    },
    {
      named: "that is a snapshot: the one that took it",
      given: { parent: { ...PARENT, kind: "snapshot" } },
      demand: { home: "n1", lacking: none },
    },
    {
      named: "that no other node can read: the one that built it",
      given: { images: { reach: () => Promise.resolve("bound") } },
      demand: { home: "n1", lacking: none },
    },
    {
      named: "that others can read: all but those that cannot, first those that have it",
      given: { holding: ["n3"], images: { refusals: () => [["n4", "has no blob store"]] } },
      demand: { having: new Set(["n1", "n3"]), lacking: new Map([["n4", "has no blob store"]]) },
    },
  ];
  test.each(rows)("$named", async ({ given, demand }) => {
    expect(await basesOf(given).bases.demand(CHILD)).toEqual(demand);
  });

  test("of which nobody has the image any more: none, for a reason without the words of a sandbox's start", async () => {
    const text = "Failed to place sandbox: no compatible node: the image was on node n1 only, which was removed";
    const lost = () => Promise.reject(new AppError("no_compatible_node", text));
    expect(await basesOf({ images: { reach: lost } }).bases.demand(CHILD)).toMatchObject({
      message: "the image was on node n1 only, which was removed",
    });
  });

  test("without one that could not fetch it, for a minute, and not for other builds", async () => {
    const { bases, clock } = basesOf({});
    bases.failed(CHILD, new AppError("no_space", "its disk is full"));
    const lacking = async (build: typeof CHILD) => {
      const demand = await bases.demand(build);
      return demand === undefined || demand instanceof AppError ? demand : [...demand.lacking];
    };
    expect(await lacking(CHILD)).toEqual([["n2", "could not fetch that template: its disk is full"]]);
    expect(await lacking({ ...CHILD, id: "other" })).toEqual([]);
    clock.now = 60_000;
    expect(await lacking(CHILD)).toEqual([]);
    clock.now = 0;
    bases.keep(new Set());
    expect(await lacking(CHILD)).toEqual([]);
  });
});

describe("the way of a template to the node that builds on top of it", () => {
  const rows: readonly { named: string; given: Given; asked: readonly string[] }[] = [
    { named: "begins where the node lacks it", given: {}, asked: ["n2"] },
    { named: "is not needed where it was built", given: { parent: { ...PARENT, nodeId: "n2" } }, asked: [] },
    { named: "is not needed where it was fetched before", given: { holding: ["n2"] }, asked: [] },
    { named: "is not there for a snapshot", given: { parent: { ...PARENT, kind: "snapshot" } }, asked: [] },
    { named: "is not needed without a record", given: { parent: undefined }, asked: [] },
  ];
  test.each(rows)("$named", async ({ given, asked }) => {
    const world = basesOf(given);
    expect(await world.bases.bring(CHILD)).toBe("here");
    expect(world.asked).toEqual(asked);
  });

  test("takes several requests, ends with a reason, or is asked for again where the node is silent", async () => {
    const answers = (fetch: Images["fetch"]) => basesOf({ images: { fetch } }).bases.bring(CHILD);
    expect(await answers(() => Promise.resolve(new AppError("unavailable", "10 of 500 MiB")))).toBe("on its way");
    const full = new AppError("no_space", "full");
    expect(await answers(() => Promise.reject(full))).toBe(full);
    const silent = new AppError("node_unreachable", "silent");
    await expect(answers(() => Promise.reject(silent))).rejects.toBe(silent);
  });
});

describe("of the nodes that may build, one that has the template below", () => {
  function chosen(region: string | undefined, nodes: Readonly<Record<string, Partial<Candidate>>>) {
    const candidates = Object.entries(nodes).map(
      ([id, over]): Candidate => ({
        id,
        status: "ready",
        labels: {},
        cpuCount: 8,
        cpuPercent: 0,
        memoryTotalBytes: 2 ** 34,
        allocatedCpu: 0,
        allocatedMemoryBytes: 0,
        sandboxCount: 0,
        maxSandboxes: 10,
        disk: undefined,
        ...over,
      }),
    );
    const demand = { cpuCount: 1, memoryBytes: 2 ** 30, diskBytes: 0, labels: {}, region };
    const policy = { cpuOvercommit: 1, memoryOvercommit: 1, diskOvercommit: 1 };
    return nearFirst(candidates, new Set(["n1"]), (exclude) =>
      choose(candidates, { ...demand, exclude }, policy, () => 0),
    );
  }

  test("comes first, though another one has less to do", () => {
    expect(chosen(undefined, { n1: { cpuPercent: 90 }, n2: {} })).toEqual({ is: "node", id: "n1" });
  });

  test("is passed over where it takes no build", () => {
    expect(chosen(undefined, { n1: { status: "standby" }, n2: {} })).toEqual({ is: "node", id: "n2" });
  });

  test("is passed over where it has no region, and another node has the project's", () => {
    expect(chosen("EU", { n1: {}, n2: { labels: { region: "eu" } } })).toEqual({ is: "node", id: "n2" });
    expect(chosen("EU", { n1: {}, n2: {} })).toEqual({ is: "node", id: "n1" });
  });
});
