/** Whether what is stored on a node is started there or on another node, and what callers are told where neither can be. Pure. */

import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import { AppError } from "../../../shared/http/errors.ts";

/** The node that made a snapshot, as this orchestrator sees it. */
export interface Home {
  /** Undefined: the node was removed. */
  readonly status: NodeStatus | undefined;
  /** It reports, and this orchestrator does not reach it. */
  readonly unreached: boolean;
}

/**
 * `wait`: the orchestrator has just started, and the node may report soon. A draining node starts what has no other place.
 * @param movable the snapshot is in the blob store, or its node lets others read it; and nothing binds it to its node
 */
export function whereToStart({ status, unreached }: Home, movable: boolean): "home" | "elsewhere" | "wait" | "nowhere" {
  if (status === "ready" || status === "standby") return "home";
  if (status === "draining") return movable ? "elsewhere" : "home";
  if (status === "connecting" && !unreached) return "wait";
  return movable ? "elsewhere" : "nowhere";
}

const PREFIX = "Failed to place sandbox: no compatible node: ";

/** The node that has the snapshot may answer soon. */
export function notYet(home: string): AppError {
  return new AppError(
    "no_compatible_node",
    `${PREFIX}node ${home}, which holds the sandbox's snapshot, is not answering: it has not reported since this orchestrator's start`,
  );
}

/** @param bound why the snapshot cannot leave its node, although it is stored elsewhere */
export function onItsNodeOnly(home: string, { status }: Pick<Home, "status">, bound: string | undefined): AppError {
  const what =
    status === undefined
      ? `node ${home}, which held the sandbox's snapshot, was removed`
      : `node ${home}, which holds the sandbox's snapshot, is not answering`;
  const why = bound ?? "the snapshot is on that node only, because it is not in a blob store (SVC_BLOB_STORE)";
  return new AppError(
    "no_compatible_node",
    `${PREFIX}${what}; ${why}: it starts again when the node is back, and if the node is lost, its memory and disk are lost with it`,
  );
}

const MIB = 1024 ** 2;

/**
 * A node works on it and goes on.
 * @param home the node that gives it; undefined: the blob store does
 * @param nodeId the node that fetches it; undefined: the other one still describes it
 */
export function onItsWay(
  home: string | undefined,
  nodeId: string | undefined,
  { doneBytes, totalBytes }: { readonly doneBytes: number; readonly totalBytes: number },
  thing = "the snapshot",
): AppError {
  const [done, total] = [doneBytes, totalBytes].map((bytes) => Math.ceil(bytes / MIB));
  const from = home === undefined ? "the blob store" : `node ${home}`;
  const what =
    nodeId === undefined
      ? `${from} prepares ${thing} for another node`
      : `${thing} is on its way from ${from} to node ${nodeId}`;
  return new AppError("unavailable", `${what} (${done} of ${total} MiB): ask again in some seconds`);
}
