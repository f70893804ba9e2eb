/**
 * Removes a node from the platform. Refuses while the records have something on it; when forced, ends or deletes the records
 * of all that, each with its event, because nobody reaches it any more. What is in the blob store starts on another node, and stays.
 */

import type { NodeContents } from "../../shared/api/nodes/nodes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { NodeLoss } from "../lifecycle/ending/node-loss.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Store } from "../store/store.ts";

export interface NodeRemovalDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly nodeLoss: Pick<NodeLoss, "removed">;
  /** Time without a report after which a node counts as silent. */
  readonly nodeTimeoutMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface NodeRemoval {
  /** Resolves with what was on the node. @throws {AppError} not_found, conflict */
  remove(nodeId: string, options: { readonly force: boolean }): Promise<NodeContents>;
}

export function createNodeRemoval(deps: NodeRemovalDeps): NodeRemoval {
  const { store, nodes, nodeLoss, now, log } = deps;

  /** A node that has joined loses its key, so that its reports are refused. Another one would register itself again. */
  async function refuseReporting(nodeId: string, lastHeardAt: number): Promise<void> {
    const silentMs = now() - lastHeardAt;
    if (silentMs > deps.nodeTimeoutMs || (await store.machines.keyOf(nodeId)) !== undefined) return;
    throw new AppError(
      "conflict",
      `node '${nodeId}' reported ${Math.round(silentMs / 1_000)} s ago and would register itself again: stop its agent, wait ${Math.ceil(deps.nodeTimeoutMs / 1_000)} s, then remove it`,
    );
  }

  async function loseAll(nodeId: string): Promise<void> {
    for (const record of await store.sandboxes.onNode(nodeId)) await nodeLoss.removed(record);
    for (const { id } of await store.pausedSandboxes.pausedOn(nodeId)) {
      const record = await store.sandboxes.get(id);
      // A drain may have taken it to another node meanwhile.
      if (record?.nodeId === nodeId) await nodeLoss.removed(record);
    }
    await store.loseSnapshots(nodeId);
  }

  return {
    async remove(nodeId, { force }) {
      const node = nodes.get(nodeId);
      if (node !== undefined) await refuseReporting(nodeId, node.lastHeardAt);
      // One that has joined and never reported has its name all the same.
      else if ((await store.machines.keyOf(nodeId)) === undefined)
        throw new AppError("not_found", `node '${nodeId}' not found`);
      const contents = await store.nodes.contents(nodeId);
      const named = textOf(contents);
      if (named !== "" && !force) {
        throw new AppError(
          "conflict",
          `node '${nodeId}' has ${named}: end or delete them first (POST /nodes/${nodeId} with the status 'draining' keeps new ones away), or remove it with all of them that are not in a blob store (?force=true)`,
        );
      }
      // First, so that no report of it is taken any more, and it gets no request and no new sandbox.
      await store.machines.removeMember(nodeId);
      await nodes.remove(nodeId);
      // A later node of this name is not drained.
      await store.drains.end(nodeId);
      await loseAll(nodeId);
      await store.nodes.remove(nodeId);
      // Again, because a report that was under way may have made it known once more, and a start may have chosen it meanwhile.
      await nodes.remove(nodeId);
      await loseAll(nodeId);
      log.warn({ nodeId, ...contents }, "an operator removed a node");
      return contents;
    },
  };
}

function textOf({ inStore, ...there }: NodeContents): string {
  const parts = [
    ["sandboxes", "running sandbox", "running sandboxes"],
    ["pausedSandboxes", "paused sandbox", "paused sandboxes"],
    ["snapshots", "snapshot", "snapshots"],
    ["volumes", "volume", "volumes"],
    ["templates", "build of a template", "builds of templates"],
  ] as const;
  const stored: Partial<Record<keyof typeof there, number>> = inStore;
  return parts
    .filter(([kind]) => there[kind] > 0)
    .map(([kind, one, many]) => {
      const alsoStored = stored[kind] ?? 0;
      const also = alsoStored === 0 ? "" : ` (${alsoStored} in the blob store)`;
      return `${there[kind]} ${there[kind] === 1 ? one : many}${also}`;
    })
    .join(", ");
}
