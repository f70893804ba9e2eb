/** Which nodes let other nodes read what they have. Pure. */

import type { NodeView } from "./entry.ts";

const LIVING: ReadonlySet<NodeView["status"]> = new Set(["ready", "standby", "draining"]);

/** Whether the node answers, and has a version that offers what it has. */
export function offers(node: NodeView | undefined): node is NodeView {
  return node !== undefined && LIVING.has(node.status) && node.facts.capabilities.peers === true;
}
