/** The sandboxes on one node, which operators alone are told: the rows of the list do not name their node. */

import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import type { adminSandboxApi } from "../../../shared/api/projects/all-sandboxes.ts";
import { get, pages, type Reply } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { projectId, session } from "../base/session.ts";

type Placed = Reply<typeof adminSandboxApi.listAllSandboxes>[number];

/** Sandboxes move rarely: drains, and resumes elsewhere. */
const EVERY_MS = 10_000;

export interface OnNode {
  /** Ids of the nodes; empty for everybody but operators. */
  readonly nodes: readonly string[];
  /** Ids of the sandboxes on the chosen node; undefined: no node is chosen, or it was not asked yet. */
  readonly ids: ReadonlySet<string> | undefined;
  readonly error: unknown;
}

/** @param node the chosen one; empty: none */
export function useOnNode(node: string): OnNode {
  const isOperator = session.value.kind === "admin";
  const nodes = useLoaded(
    (signal) => (isOperator ? get<NodeDetail[]>("/nodes", {}, signal) : Promise.resolve([])),
    [isOperator],
  );
  const placed = useLoaded(
    async (signal) => {
      if (node === "") return undefined;
      const query = { teamID: projectId.peek(), nodeID: node };
      const listed = await pages<Placed>("/admin/sandboxes", signal, { query });
      return { node, ids: new Set(listed.map(({ sandboxID }) => sandboxID)) };
    },
    [node],
    EVERY_MS,
  );
  return {
    nodes: (nodes.value ?? []).map(({ id }) => id),
    // An answer about another node may still be shown for a moment.
    ids: placed.value?.node === node ? placed.value.ids : undefined,
    error: nodes.error ?? placed.error,
  };
}
