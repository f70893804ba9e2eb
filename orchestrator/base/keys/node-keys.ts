/**
 * The keys that nodes' tokens are made from: the current one and earlier ones. A node may use a token of any of them, and
 * gets tokens of the key that it used last, so that nodes change over one after another.
 */

import { edgeToken, nodeOfToken, nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { sameSecret } from "../../../shared/ids.ts";
import { createVersions } from "./versions.ts";

export interface NodeKeys {
  readonly currentId: string;
  /** The node that the token speaks for, whose key is remembered; undefined when none of the keys made the token. */
  nodeOf(token: string): string | undefined;
  /** Each token that the node may send. */
  tokensFrom(nodeId: string): string[];
  /** Id of the key that the node used last. */
  keyOf(nodeId: string): string | undefined;
  /** Remembers what was recorded of the node; undefined: nothing, so the oldest key made its tokens. */
  restore(nodeId: string, keyId: string | undefined): void;
  /** The node was removed. */
  forget(nodeId: string): void;
  /** The token that the orchestrator and the edge send to the node. */
  tokenTo(nodeId: string): string;
  /** Whether the token is that of edge programs on this machine. */
  isEdge(token: string): boolean;
}

/** @param previous earlier keys, newest first */
export function createNodeKeys(current: string, previous: readonly string[]): NodeKeys {
  const keys = createVersions("node key", current, previous);
  const used = new Map<string, string>();
  return {
    currentId: keys.currentId,
    nodeOf(token) {
      for (const id of keys.ids) {
        const nodeId = nodeOfToken(keys.of(id) ?? current, token, "from node");
        if (nodeId === undefined) continue;
        used.set(nodeId, id);
        return nodeId;
      }
      return undefined;
    },
    tokensFrom: (nodeId) => keys.all.map((key) => nodeToken(key, nodeId, "from node")),
    keyOf: (nodeId) => used.get(nodeId),
    restore: (nodeId, keyId) => void used.set(nodeId, keyId ?? keys.oldestId),
    forget: (nodeId) => void used.delete(nodeId),
    tokenTo: (nodeId) => nodeToken(keys.of(used.get(nodeId) ?? "") ?? current, nodeId, "to node"),
    isEdge: (token) => keys.ids.some((id) => sameSecret(token, edgeToken(keys.of(id) ?? current))),
  };
}
