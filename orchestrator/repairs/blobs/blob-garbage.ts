/** Once a day one node collects the garbage of the blob store: it gets all references as they are at one instant. */

import { ENCODINGS_DETAIL, readsZstd } from "../../../shared/agent-api/blobs/encodings.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { NodeView } from "../../nodes/entry.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { BlobRefStore } from "../../store/storage/blob-refs.ts";

export interface BlobGarbageDeps {
  readonly refs: Pick<BlobRefStore, "sweep" | "claimDay" | "releaseDay">;
  readonly nodes: Pick<Nodes, "list" | "agent">;
  readonly now: () => number;
  readonly log: Log;
}

const DAY_MS = 86_400_000;
/** After a start of the orchestrator, and between two tries on the same day. */
const WAIT_MS = 600_000;
const CALL_LIMIT_MS = 60_000;

/** One round; it does nothing until it is due. Several orchestrators may run it: one of them has the day. */
export function createBlobGarbage({ refs, nodes, now, log }: BlobGarbageDeps): () => Promise<void> {
  let dueAt = now() + WAIT_MS;
  return async () => {
    if (now() < dueAt) return;
    dueAt = now() + WAIT_MS;
    const day = Math.floor(now() / DAY_MS);
    const collector = collectorOf(nodes.list());
    if (collector === undefined || !(await refs.claimDay(day))) return;
    try {
      const at = now();
      const live = (await refs.sweep()).map(({ ref, projectId }) => ({ ref, projectId }));
      await nodes.agent(collector.id).collectBlobs({ body: { at, live } }, { timeoutMs: CALL_LIMIT_MS });
      log.info({ nodeId: collector.id, references: live.length }, "a node collects the garbage of the blob store");
    } catch (reason) {
      await refs.releaseDay(day);
      log.warn(
        { err: AppError.from(reason), nodeId: collector.id },
        "the garbage of the blob store is not collected yet",
      );
    }
  };
}

/** The node that does least, of those that read every encoding: another one cannot read all manifests, and then deletes nothing. */
function collectorOf(nodes: readonly NodeView[]): NodeView | undefined {
  const able = nodes.filter(({ status, facts }) => status === "ready" && facts.capabilities.blobStore === true);
  const best = able.filter(({ facts }) => readsZstd(facts.capabilities.detail[ENCODINGS_DETAIL]));
  return (best.length > 0 ? best : able).toSorted((one, other) => one.load.sandboxCount - other.load.sandboxCount)[0];
}
