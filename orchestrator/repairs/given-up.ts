/**
 * Records what reconciliation asks a node to hold: a log line and an audit entry each, and an event where the sandbox is
 * known. The node is asked in every reply until it has done it, so each is recorded once, by whichever orchestrator.
 */

import { LRUCache } from "lru-cache";
import { atMost } from "../../shared/program/at-most.ts";
import type { Log } from "../../shared/program/log.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { Plan } from "./reconcile.ts";

export interface GivenUp {
  note(nodeId: string, plan: Pick<Plan, "hold" | "deleteSnapshots">, records: readonly SandboxRecord[]): Promise<void>;
}

interface GivenUpDeps {
  readonly store: Store;
  readonly log: Log;
}

const REMEMBERED = 100_000;

export function createGivenUp({ store, log }: GivenUpDeps): GivenUp {
  const noted = new LRUCache<string, true>(atMost(REMEMBERED));

  async function once(id: string, work: () => Promise<void>): Promise<void> {
    if (noted.has(id)) return;
    await work();
    noted.set(id, true);
  }

  return {
    async note(nodeId, { hold, deleteSnapshots }, records) {
      const known = new Map(records.map((record) => [record.id, record]));
      for (const { executionId, sandboxId } of hold) {
        await once(executionId, async () => {
          log.warn({ nodeId, sandboxId, executionId }, "asked a node to hold a sandbox that has no record");
          await store.noteHeld({
            nodeId,
            object: { kind: "sandbox", id: sandboxId },
            id: executionId,
            record: undefined,
          });
        });
      }
      for (const { snapshotId, sandboxId, kind } of deleteSnapshots) {
        await once(snapshotId, async () => {
          log.warn({ nodeId, sandboxId, snapshotId, kind }, "asked a node to hold a snapshot that no record names");
          const object = { kind: "snapshot", id: snapshotId };
          await store.noteHeld({ nodeId, object, id: snapshotId, record: known.get(sandboxId) });
        });
      }
    },
  };
}
