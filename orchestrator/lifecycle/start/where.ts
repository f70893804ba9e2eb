/** Whether what is stored on a node is started there or on another node, and what callers are told where neither can be. Pure. */

import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import { AppError, type ErrorCode } from "../../../shared/http/errors.ts";

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

/** The reason alone, for a sentence around it. */
export function reasonIn(message: string): string {
  return message.replace(/^Failed to place sandbox: (?:no compatible node: )?/, "");
}

/** What may pass, or another node of the kind ends: metrics and callers tell it from nodes that never fit. */
const PASSING: ReadonlySet<ErrorCode> = new Set(["cluster_at_capacity", "no_space", "node_busy", "unavailable"]);

/**
 * What a new sandbox starts from is on a node that lacks a label of the project's nodes.
 * @param cause why no node that has the labels can have it
 */
export function lacksLabel(home: string, label: string, cause: AppError): AppError {
  const [code, prefix] = PASSING.has(cause.code)
    ? ([cause.code, "Failed to place sandbox: "] as const)
    : (["no_compatible_node", PREFIX] as const);
  return new AppError(
    code,
    `${prefix}node ${home}, which has the snapshot that it starts from, does not have the label ${label}, which the project's nodes ` +
      `must have, and it cannot start on another node: ${reasonIn(cause.message)}`,
    { cause },
  );
}

/** The node that has the snapshot may answer soon. */
export function notYet(home: string): AppError {
  return new AppError(
    "no_compatible_node",
    `${PREFIX}node ${home}, which holds the sandbox's snapshot, is not answering: it has not reported since this orchestrator's start`,
  );
}

/**
 * @param bound why the snapshot cannot leave its node, although it is stored elsewhere
 * @param template the snapshot is the memory of this template; undefined: it is of a sandbox
 */
export function onItsNodeOnly(
  home: string,
  { status }: Pick<Home, "status">,
  { bound, template }: { readonly bound: string | undefined; readonly template?: string | undefined },
): AppError {
  const thing = template === undefined ? "the sandbox's snapshot" : `the memory of template ${template}`;
  const what =
    status === undefined
      ? `node ${home}, which held ${thing}, was removed`
      : `node ${home}, which holds ${thing}, is not answering`;
  const why =
    bound ??
    `${template === undefined ? "the snapshot" : "it"} is on that node only, because it is not in a blob store (SVC_BLOB_STORE)`;
  const loss = template === undefined ? "its memory and disk are lost with it" : "the template has to be built again";
  return new AppError(
    "no_compatible_node",
    `${PREFIX}${what}; ${why}: it starts again when the node is back, and if the node is lost, ${loss}`,
  );
}

/**
 * The image of a template that no node can fetch.
 * @param nodeId the node that was to start it; undefined: none
 */
export function imageOnItsNodeOnly(
  templateId: string,
  home: string,
  { status }: Pick<Home, "status">,
  nodeId?: string,
): AppError {
  const what = `the image of template ${templateId} is on node ${home} only, because it is not in a blob store (SVC_BLOB_STORE)`;
  if (status === undefined)
    return new AppError(
      "no_compatible_node",
      `${PREFIX}the image of template ${templateId} was on node ${home} only, which was removed: build the template again`,
    );
  if (nodeId !== undefined)
    return new AppError(
      "no_compatible_node",
      `${PREFIX}${what}, and node ${nodeId} cannot fetch it from there: start it when node ${home} has room and answers, or build the template again`,
    );
  return new AppError(
    "no_compatible_node",
    `${PREFIX}${what}, and that node is not answering: it starts again when the node is back, and if the node is lost, the template has to be built again`,
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
