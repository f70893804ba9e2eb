/**
 * Decides, before a snapshot touches its sandbox, whether the expected size of the snapshot fits: into the room above the
 * disk's reserve, the node's quota and its project's. What is under way counts, so that many at once do not all fit alone.
 */

import type { AppError } from "../../../shared/http/errors.ts";
import type { DiskReserve, Needed } from "../../node-disk/reserve.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Snapshot, SnapshotStore } from "../../store/snapshots.ts";
import { type Amount, nodeQuotas, type QuotaSettings, quotaRefusal, storedBy, sum } from "../store/quota.ts";
import type { SnapshotRequest } from "./memory-to-disk.ts";

type DiskRoom = Pick<DiskReserve, "snapshotRefusal" | "storageRefusal" | "disks" | "seen">;

export interface AdmissionDeps {
  readonly settings: QuotaSettings;
  readonly snapshots: Pick<SnapshotStore, "all">;
  readonly disk: DiskRoom;
  /** Bytes of a sandbox's writable layer, as last measured; 0 when it was not. */
  readonly diskBytes: (executionId: string) => number;
  /** Measures a writable layer; undefined when that takes too long. */
  readonly diskUsage: (directory: string) => Promise<number | undefined>;
}

export interface Admission {
  /**
   * The room stays promised to the snapshot until the returned function is called.
   * @throws {AppError} no_space
   */
  readonly admit: (sandbox: Sandbox, request: SnapshotRequest, kind: Snapshot["kind"]) => Promise<() => void>;
  /** Bytes of a sandbox's writable layer, as measured for its admission or before. */
  readonly diskBytes: (executionId: string) => number;
  /** Bytes that the node stores, and may store; 0 where there is no quota. */
  used(): { readonly storedBytes: number; readonly quotaBytes: number };
}

interface Promised {
  readonly executionId: string;
  readonly projectId: string | undefined;
  readonly expected: Amount;
  readonly needed: Needed;
}

export function createAdmission(deps: AdmissionDeps): Admission {
  const { settings, snapshots, disk, diskBytes, diskUsage } = deps;
  const underWay = new Set<Promised>();

  /** Memory that CRIU writes, and the writable layer: copied by a checkpoint, kept by a pause. */
  const expectedOf = async ({ executionId, container }: Sandbox, { memory }: SnapshotRequest): Promise<Amount> => {
    const known = diskBytes(executionId);
    const { upperDirectory } = container;
    const measured = known > 0 || upperDirectory === undefined ? known : ((await diskUsage(upperDirectory)) ?? 0);
    return { memory: memory ? memoryOf(container) : 0, disk: measured };
  };

  const refusal = async (asked: Promised, sandbox: Sandbox): Promise<AppError | undefined> => {
    const { projectId, expected, needed } = asked;
    const others = [...underWay].filter((one) => one !== asked);
    const full = await disk.storageRefusal({
      snapshots: others.reduce((bytes, one) => bytes + one.needed.snapshots, needed.snapshots),
      sandboxes: others.reduce((bytes, one) => bytes + one.needed.sandboxes, needed.sandboxes),
    });
    if (full !== undefined) return full;
    // The image that the sandbox was resumed from is deleted when its new pause is stored, so it does not count.
    const kept = snapshots
      .all()
      .filter(({ state, disk: { containerId } }) => state !== "spent" || containerId !== sandbox.container.id);
    const stored = (of: (one: { readonly projectId: string | undefined }) => boolean) =>
      sum([storedBy(kept.filter(of)), ...others.filter(of).map((one) => one.expected)]);
    return quotaRefusal({
      expected,
      stored: stored(() => true),
      ofProject: projectId === undefined ? undefined : stored((one) => one.projectId === projectId),
      settings,
      disks: await disk.disks(),
    });
  };

  return {
    async admit(sandbox, request, kind) {
      // A pause without memory writes nothing, and is how a sandbox that is held or over its quota can be kept.
      if (!request.memory && kind === "pause") return () => undefined;
      const short = disk.snapshotRefusal(sandbox.executionId);
      if (short !== undefined) throw short;
      const expected = await expectedOf(sandbox, request);
      const needed = { snapshots: expected.memory, sandboxes: kind === "checkpoint" ? expected.disk : 0 };
      const { executionId, projectId } = sandbox;
      const promised = { executionId, projectId, expected, needed };
      underWay.add(promised);
      const done = () => void underWay.delete(promised);
      try {
        const refused = await refusal(promised, sandbox);
        if (refused !== undefined) throw refused;
        return done;
      } catch (error) {
        done();
        throw error;
      }
    },

    diskBytes: (executionId) =>
      [...underWay].find((one) => one.executionId === executionId)?.expected.disk ?? diskBytes(executionId),

    used() {
      const { memory, disk: disks } = storedBy(snapshots.all());
      const seen = disk.seen();
      const quotas =
        seen === undefined
          ? []
          : nodeQuotas({ snapshots: seen.snapshots.space, sandboxes: seen.sandboxes.space }, settings);
      return {
        storedBytes: memory + disks,
        quotaBytes: Math.floor(quotas.reduce((bytes, one) => bytes + one.bytes, 0)),
      };
    },
  };
}

function memoryOf({ cgroup }: Sandbox["container"]): number {
  try {
    const { memory, shared } = cgroup.usage();
    return memory + shared;
  } catch {
    // Its cgroup is gone: the sandbox has just ended, and the snapshot fails with that reason.
    return 0;
  }
}
