/** An operator takes a node back while a round of its drain runs. */

import { describe, expect, test } from "vitest";
import { createNodeHandlers } from "../../../../../orchestrator/api/admin.ts";
import { startDrains } from "../../../../../orchestrator/repairs/drains/drains.ts";

const NODE = "n1";

/** A node that is drained, and the row of its drain. */
function drainedNode() {
  const node = { wanted: "draining", endedAt: undefined as number | undefined };
  const nodes = {
    get: () => ({ status: node.wanted }),
    setWanted: (_id: string, wanted: string) => {
      node.wanted = wanted;
      return Promise.resolve();
    },
  };
  const row = () => ({ nodeId: NODE, endedAt: node.endedAt, running: "move", atDeadline: "stay", atOnce: 1 });
  const drains = {
    end: () => {
      const isUnderWay = node.endedAt === undefined;
      node.endedAt ??= 1;
      return Promise.resolve(isUnderWay);
    },
    get: () => Promise.resolve(row()),
    unfinished: () => Promise.resolve(node.endedAt === undefined ? [row()] : []),
    moves: () => Promise.resolve([]),
  };
  return { node, nodes, drains };
}

/** One round of the drains. */
async function roundWith(nodes: object, drains: object): Promise<void> {
  const held: { round?: (signal: AbortSignal) => unknown } = {};
  startDrains({
    store: {
      drains,
      sandboxes: { onNode: () => Promise.resolve([]) },
      pausedSandboxes: { pausedOn: () => Promise.resolve([]) },
      nodeEvents: { note: () => Promise.resolve() },
    },
    nodes,
    lifecycle: {},
    rounds: (_options: unknown, round: (signal: AbortSignal) => unknown) => {
      held.round = round;
      return { wake: () => undefined, stop: () => Promise.resolve() };
    },
    now: () => 0,
  } as never);
  await held.round?.(new AbortController().signal);
}

describe("a node that is drained, and taken back", () => {
  test("takes sandboxes again, also where a round of its drain has set it back before the drain had ended", async () => {
    const { node, nodes, drains } = drainedNode();
    const end = () => {
      node.wanted = "draining";
      return drains.end();
    };
    const { setNodeStatus } = createNodeHandlers({ nodes, store: { drains: { ...drains, end } } } as never);
    const ask = { params: { nodeID: NODE }, body: { status: "ready" } };
    await setNodeStatus(ask as never, {} as never);
    expect(node).toEqual({ wanted: "ready", endedAt: 1 });
  });

  test("is not set back by a round that read the drain before its end", async () => {
    const { node, nodes, drains } = drainedNode();
    const unfinished = async () => {
      const read = await drains.unfinished();
      await drains.end();
      node.wanted = "ready";
      return read;
    };
    await roundWith(nodes, { ...drains, unfinished });
    expect(node.wanted).toBe("ready");
  });

  test("is drained while its drain lasts, also by an orchestrator that has not heard of that yet", async () => {
    const { node, nodes, drains } = drainedNode();
    node.wanted = "ready";
    await roundWith(nodes, drains);
    expect(node.wanted).toBe("draining");
  });
});
