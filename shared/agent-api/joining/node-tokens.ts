/**
 * Tokens between the orchestrator and its nodes: one per node and direction, all derived from a key that only the
 * orchestrator has. A token that leaks from a node opens that node and speaks for that node, and nothing else.
 */

import { createHmac } from "node:crypto";
import { sameSecret } from "../../ids.ts";

/** `to node`: sent by orchestrator and edge. `from node`: sent by the node's agent. */
export type Direction = "to node" | "from node";

/** `<node id>:<proof>`. Ids of nodes have no colon. */
export function nodeToken(key: string, nodeId: string, direction: Direction): string {
  return `${nodeId}:${createHmac("sha256", key).update(`${direction}\n${nodeId}`).digest("base64url")}`;
}

/** The node of the token, in this direction; undefined when the token was not made from this key. */
export function nodeOfToken(key: string, token: string, direction: Direction): string | undefined {
  const nodeId = token.slice(0, Math.max(0, token.lastIndexOf(":")));
  return sameSecret(token, nodeToken(key, nodeId, direction)) ? nodeId : undefined;
}

/** The token of edge programs on the orchestrator's machine. It has the form of no node's token. */
export function edgeToken(key: string): string {
  return `edge.${createHmac("sha256", key).update("edge").digest("base64url")}`;
}
