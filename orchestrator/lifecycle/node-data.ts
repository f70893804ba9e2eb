/** Reads what a node keeps of a sandbox (logs, metrics, decisions about its connections) when the node may be away. */

import { AppError, isError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { iso } from "../forms/time.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import { endedAtOf, shown } from "./record-state.ts";

export interface NodeData {
  /**
   * The node's answer; `none` for a paused sandbox whose node is away or does not know its execution.
   * @throws {AppError} gone for an ended sandbox whose node has been lost with it; otherwise the node's error
   */
  read<T>(
    record: SandboxRecord,
    what: string,
    sources: { readonly from: () => Promise<T>; readonly none: T },
  ): Promise<T>;
}

export interface NodeDataDeps {
  readonly nodes: Nodes;
  /** Silence after which a node counts as lost. */
  readonly nodeLostMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export function createNodeData({ nodes, nodeLostMs, now, log }: NodeDataDeps): NodeData {
  const startedAt = now();

  /** Undefined: the node answers, or was silent for a short time only. */
  function lost({ id, nodeId }: SandboxRecord, what: string): AppError | undefined {
    const node = nodes.get(nodeId);
    // Silence counts from this orchestrator's start: no report could arrive while it was down.
    if (node !== undefined && now() - Math.max(node.lastHeardAt, startedAt) < nodeLostMs) return undefined;
    const since = node === undefined ? "" : `, which has not answered since ${iso(node.lastHeardAt)}`;
    return new AppError("gone", `the ${what} of sandbox "${id}" were lost with node '${nodeId}'${since}`);
  }

  return {
    async read(record, what, { from, none }) {
      try {
        return await from();
      } catch (error) {
        if (endedAtOf(record) !== undefined && isError(error, "node_unreachable")) throw lost(record, what) ?? error;
        if (shown(record) !== "paused") throw error;
        log.debug({ err: error, sandboxId: record.id }, `could not read the ${what} of a paused sandbox`);
        return none;
      }
    },
  };
}
