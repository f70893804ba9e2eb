/**
 * The keys that nodes' tokens are made from: the current one and earlier ones. A node may use a token of any of them, and
 * gets tokens of the key that it used last, so that nodes change over one after another.
 */

import { createHash } from "node:crypto";
import { nodeOfToken, nodeToken } from "../../shared/agent-api/node-tokens.ts";

export interface NodeKeys {
  readonly currentId: string;
  /** The node that the token speaks for, whose key is remembered; undefined when none of the keys made the token. */
  nodeOf(token: string): string | undefined;
  /** Id of the key that the node used last. */
  keyOf(nodeId: string): string | undefined;
  /** Remembers what was recorded of the node; undefined: nothing, so the oldest key made its tokens. */
  restore(nodeId: string, keyId: string | undefined): void;
  /** The token that the orchestrator and the edge send to the node. */
  tokenTo(nodeId: string): string;
}

/** @param previous earlier keys, newest first */
export function createNodeKeys(current: string, previous: readonly string[]): NodeKeys {
  const all = [current, ...previous];
  const byId = new Map(all.map((key) => [idOf(key), key]));
  const oldest = all.at(-1) ?? current;
  const used = new Map<string, string>();
  return {
    currentId: idOf(current),
    nodeOf(token) {
      for (const [id, key] of byId) {
        const nodeId = nodeOfToken(key, token, "from node");
        if (nodeId === undefined) continue;
        used.set(nodeId, id);
        return nodeId;
      }
      return undefined;
    },
    keyOf: (nodeId) => used.get(nodeId),
    restore: (nodeId, keyId) => void used.set(nodeId, keyId ?? idOf(oldest)),
    tokenTo: (nodeId) => nodeToken(byId.get(used.get(nodeId) ?? "") ?? current, nodeId, "to node"),
  };
}

/** Names a key without revealing it: keys are random and long. */
function idOf(key: string): string {
  return createHash("sha256").update(`node key id\n${key}`).digest("hex").slice(0, 16);
}
