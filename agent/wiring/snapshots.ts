/** Constructs the parts that keep and restore snapshots on this machine, and then what takes them of the live set. */

import { createContact } from "../api/report.ts";
import type { ClaimedStore } from "../blobs/claimed-store.ts";
import type { Lease } from "../lease/lease.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import { createExpiry } from "../sandboxes/expiry.ts";
import { type SnapshotParts, startSnapshots } from "../snapshots/start-snapshots.ts";
import { endExpired } from "../snapshots/take/end-expired.ts";
import { createSnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { Base } from "./base.ts";
import type { NetworkParts } from "./network.ts";
import type { NodeParts } from "./node.ts";
import type { LiveParts, SandboxParts } from "./sandboxes.ts";

interface SnapshotSources {
  readonly found: RecoveryResult;
  readonly network: NetworkParts;
  readonly node: NodeParts;
  readonly live: LiveParts;
  readonly blobStore: ClaimedStore;
}

export function createSnapshotParts(base: Base, sources: SnapshotSources): SnapshotParts {
  const { config, machine, peering, stores, events, now, log, teardown } = base;
  const { found, network, node, live, blobStore } = sources;
  const { slots, gate } = network;
  const { disposal, turns } = live;
  const { capabilities, disk } = node;
  const diskBytes = (executionId: string) => live.usage.latest(executionId)?.diskUsed ?? 0;
  const isRunning = live.set.isHere;
  const onChange = () => void events.emit("changed");
  const places = { stores, blobStore, peering, slots, gate, disposal, disk };
  return startSnapshots(
    { config, machine, ...places, turns, capabilities, found, isRunning, diskBytes, onChange, now, log },
    teardown,
  );
}

interface TakerSources {
  readonly node: NodeParts;
  readonly live: LiveParts;
  readonly lease: Pick<Lease, "snapshot">;
  readonly stored: SnapshotParts;
  readonly own: SandboxParts;
}

export type TakerParts = ReturnType<typeof createTakerParts>;

/** `expiry` ends or pauses expired sandboxes when the orchestrator does not. */
export function createTakerParts(base: Base, { node, live, lease, stored, own }: TakerSources) {
  const { config, stores, events, now, log, teardown } = base;
  const { sandboxes, logs } = own;
  const contact = createContact(now);
  const taker = createSnapshotTaker({
    sandboxes,
    snapshots: stores.snapshots,
    taking: stored.taking,
    beforeEnd: (sandbox) => logs.last(sandbox),
    memoryRefusal: (what) => node.capabilities.memoryRefusal(what),
    admit: stored.admission.admit,
    around: (sandbox, of, work) => lease.snapshot(sandbox, of, work),
    onChange: () => void events.emit("changed"),
  });
  const expiry = createExpiry({
    running: live.set.running,
    lastContact: () => contact,
    graceMs: config.endGraceMs,
    end: (executionId) => endExpired(executionId, { sandboxes, taker, log }),
    log,
  });
  teardown.add("expiry", () => expiry.stop());
  events.on("sandboxes", () => expiry.changed());
  return { contact, taker, expiry };
}
