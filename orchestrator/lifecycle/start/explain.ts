/** What each node is to a new sandbox of a build, by the rules that its start goes by. Nothing is started or fetched. */

import { isOlder } from "../../../shared/older-version.ts";
import type { NodeView } from "../../nodes/entry.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { offers } from "../../nodes/offers.ts";
import type { Demand, PlacementPolicy } from "../../nodes/placement/candidate.ts";
import { explain, type Verdict } from "../../nodes/placement/choose.ts";
import type { Build } from "../../store/builds/record.ts";
import type { Core } from "../core.ts";
import { unfit } from "./elsewhere.ts";
import type { Images } from "./images.ts";
import { whereToStart } from "./where.ts";

/** What the project of the sandbox asks of a node. */
export interface Wish {
  readonly region?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

export type Explain = (build: Build, wish: Wish) => Promise<Verdict[]>;

interface ExplainDeps {
  readonly core: Pick<Core, "nodes"> & {
    readonly store: { readonly blobRefs: Pick<Core["store"]["blobRefs"], "of"> };
  };
  readonly images: Pick<Images, "holders" | "reach" | "refusals">;
  readonly placement: PlacementPolicy;
}

const MIB = 1024 ** 2;

/** The best node first. Those that only take what another one has no room for are passed over while that one has room. */
export function createExplain({ core: { nodes, store }, images, placement }: ExplainDeps): Explain {
  /** Any node that has the image of the template or can get it. */
  async function ofImage({ id: buildId, templateId, nodeId: home }: Build, demand: Demand): Promise<Verdict[]> {
    const among = (over: Partial<Demand>) => explain(nodes.candidates(), { ...demand, ...over }, placement);
    if (home === undefined) return among({});
    // A start that no node can make is refused with the reason of each.
    const reach = await images.reach({ buildId, templateId, home }).catch(() => ({ inStore: false }));
    if (reach === "bound") return among({ home: { nodeId: home, has: "the template's image" } });
    const exclude = new Map(images.refusals({ buildId, home }, reach.inStore));
    return among({ exclude, build: { id: buildId, nodeId: home, holders: images.holders(buildId) } });
  }

  /** The node that has the snapshot; where that is away, full, or lacks a label, any that can read it. */
  async function ofSnapshot(snapshotId: string, home: string, demand: Demand): Promise<Verdict[]> {
    const own = { nodeId: home, has: "the snapshot that it starts from" };
    const candidates = nodes.candidates();
    const inStore = (await store.blobRefs.of(snapshotId)) !== undefined;
    const isBound = !inStore && !offers(nodes.get(home));
    const verdicts = explain(candidates, { ...demand, home: own }, placement);
    const ofHome = verdicts.filter(({ node }) => node.id === home);
    const takes = ofHome.some(({ misfit }) => misfit === undefined);
    const known = { status: nodes.get(home)?.status, unreached: nodes.unreached(home).length > 0 };
    const isPassedOver =
      whereToStart(known, true) !== "home" ||
      ofHome.some(({ misfit }) => misfit?.at === "room" || misfit?.at === "labels");
    if (isBound || !(takes || isPassedOver)) return verdicts;
    const first: Demand["exclude"] = new Map(
      nodes.list().map(({ id }) => [id, `starts it only when node ${home}, which has the snapshot, does not`]),
    );
    const exclude = takes ? first : new Map(unfit(nodes, home, inStore));
    const others = explain(
      candidates.filter(({ id }) => id !== home),
      { ...demand, exclude },
      placement,
    );
    return [...ofHome, ...others].toSorted((a, b) => Number(a.misfit !== undefined) - Number(b.misfit !== undefined));
  }

  return (build, { region, labels }) => {
    const { id, nodeId, memory, cpuCount, memoryMB, diskSizeMB } = build;
    const from = storedOf(build);
    const demand: Demand = {
      cpuCount,
      memoryBytes: memoryMB * MIB,
      diskBytes: diskSizeMB * MIB,
      memory: from !== undefined && memory,
      network: true,
      labels,
      region,
      exclude: new Map(),
      build: { id, nodeId },
    };
    return from === undefined || nodeId === undefined ? ofImage(build, demand) : ofSnapshot(from, nodeId, demand);
  };
}

/** The snapshot that sandboxes of the build start from; undefined: they start from its image alone. */
function storedOf({ kind, id, snapshotId }: Pick<Build, "kind" | "id" | "snapshotId">): string | undefined {
  return kind === "template" ? snapshotId : id;
}

/**
 * In what a node falls short of the one that has the memory of a template, as both are now. The memory may be of an earlier kernel of
 * its node, so this decides nothing: a node that is to restore it compares itself with the memory's manifest. Undefined: in nothing,
 * or no memory is restored.
 */
export function lacksForMemory(
  build: Pick<Build, "kind" | "id" | "snapshotId" | "memory" | "nodeId">,
  node: Pick<NodeView, "id" | "facts">,
  nodes: Pick<Nodes, "get">,
): string[] | undefined {
  const home = build.nodeId === undefined ? undefined : nodes.get(build.nodeId);
  if (!build.memory || storedOf(build) === undefined || home === undefined || home.id === node.id) return undefined;
  const [{ capabilities: here, machine }, { capabilities: there, machine: its }] = [node.facts, home.facts];
  const older = (name: string, what: string) =>
    isOlder(here.detail[name], there.detail[name])
      ? [`has ${what} ${here.detail[name] ?? ""}, older than ${there.detail[name] ?? ""} of node ${home.id}`]
      : [];
  const isOther = machine.cpuModelName !== its.cpuModelName || machine.cpuModel !== its.cpuModel;
  const lacks = [
    ...older("kernel", "kernel"),
    ...older("criu", "CRIU"),
    ...(isOther
      ? [
          `has the processor ${machine.cpuModelName}, and node ${home.id} has ${its.cpuModelName}, whose features the memory counts on`,
        ]
      : []),
  ];
  return lacks.length === 0 ? undefined : lacks;
}
