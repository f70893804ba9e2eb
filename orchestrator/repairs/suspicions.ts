/**
 * The differences between a node's reports and the records, until they have lasted long enough. Where several orchestrators
 * get reports, they are in the node's row: two reports to different ones are two sightings of one difference only when no
 * report between them, to any of them, was without it.
 */

import type { OfNodes } from "../nodes/of-nodes.ts";
import type { NodeStore } from "../store/nodes/nodes.ts";
import { noSuspicions, type Suspicions } from "./reconcile.ts";

export interface SuspicionMemory {
  of(nodeId: string): Promise<Suspicions>;
  /** @param before what `of` has returned; absent: nothing is known of it */
  keep(nodeId: string, suspicions: Suspicions, before?: Suspicions): Promise<void>;
}

interface SuspicionDeps {
  readonly store: Pick<NodeStore, "suspicions" | "suspect">;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  /** Where they are while no other orchestrator can use the database. */
  readonly own: Pick<OfNodes<Suspicions>, "get" | "set">;
}

export function createSuspicionMemory({ store, alone, own }: SuspicionDeps): SuspicionMemory {
  if (alone) {
    return {
      of: (nodeId) => Promise.resolve(own.get(nodeId) ?? noSuspicions),
      keep(nodeId, suspicions) {
        own.set(nodeId, suspicions);
        return Promise.resolve();
      },
    };
  }
  return {
    async of(nodeId) {
      const stored = await store.suspicions(nodeId);
      return stored === undefined ? noSuspicions : fromText(stored);
    },
    async keep(nodeId, suspicions, before) {
      const text = toText(suspicions);
      if (before === undefined || text !== toText(before)) await store.suspect(nodeId, text);
    },
  };
}

type Pairs = readonly (readonly [string, number])[];

/** Undefined: there are none. */
function toText({ orphans, missing, strays }: Suspicions): string | undefined {
  if (orphans.size + missing.size + strays.size === 0) return undefined;
  return JSON.stringify({ orphans: [...orphans], missing: [...missing], strays: [...strays] });
}

function fromText(text: string): Suspicions {
  const { orphans, missing, strays } = JSON.parse(text) as Readonly<Record<keyof Suspicions, Pairs>>;
  return { orphans: new Map(orphans), missing: new Map(missing), strays: new Map(strays) };
}
