/**
 * What the node's disks have left, above the reserve that it keeps free. When a disk is short it refuses new work;
 * pressure.ts then makes room, and tells here what it holds.
 */

import { AppError } from "../../shared/http/errors.ts";
import {
  type DiskLevel,
  levelOf,
  type ReadSpace,
  type Reserve,
  reserveOf,
  type Space,
  shortage,
  tooLarge,
} from "./space.ts";

export interface ReserveDeps {
  readonly configuredMb: number | undefined;
  /** Directory that sandboxes write to. */
  readonly dataRoot: () => Promise<string>;
  /** Directory of stored memory. */
  readonly snapshots: string;
  readonly readSpace: ReadSpace;
  /** Executions that an earlier agent process froze: they count as held. */
  readonly held: readonly string[];
  readonly now: () => number;
}

export interface DiskReserve {
  /** Why no sandbox or build can begin now; undefined while there is room, and before the first check. */
  refusal(): AppError | undefined;
  /** Why no snapshot of this sandbox can be written now. */
  snapshotRefusal(id: string): AppError | undefined;
  /** Why this number of bytes cannot be stored now. Measures the disks at each call. */
  storageRefusal(needed: Needed): Promise<AppError | undefined>;
  /** Measures the disks now. */
  disks(): Promise<Disks>;
  /** Measures the disks, and keeps what it finds as the last check. */
  check(): Promise<Checked>;
  /** The disks and their reserves at the last check; undefined before the first. */
  seen(): Checked | undefined;
  isHeld(id: string): boolean;
  /** When each was held, by the id of its execution or build. Only pressure.ts changes it. */
  readonly held: Map<string, number>;
}

/** The file systems that memory images are on, and the disks of sandboxes; may be one. */
export interface Disks {
  readonly snapshots: Space;
  readonly sandboxes: Space;
}

/** Bytes that a snapshot will write to each disk. */
export type Needed = { readonly [Disk in keyof Disks]: number };

export interface WatchedDisk {
  readonly space: Space;
  readonly reserve: Reserve;
  readonly level: DiskLevel;
}

type Checked = { readonly [Disk in keyof Disks]: WatchedDisk };

export function createReserve(deps: ReserveDeps): DiskReserve {
  const { configuredMb, dataRoot, snapshots, now } = deps;
  const held = new Map(deps.held.map((id) => [id, now()]));
  const last = { checked: undefined as Checked | undefined };

  const look = async (directory: string): Promise<WatchedDisk> => {
    const space = await deps.readSpace(directory);
    const reserve = reserveOf(space, configuredMb);
    return { space, reserve, level: levelOf(space, reserve) };
  };

  const lookAtBoth = async (): Promise<Checked> => {
    const [ofSnapshots, ofSandboxes] = await Promise.all([look(snapshots), dataRoot().then(look)]);
    return { snapshots: ofSnapshots, sandboxes: ofSandboxes };
  };

  return {
    held,
    refusal: () => refused(last.checked?.sandboxes),
    snapshotRefusal: (id) =>
      refused(last.checked?.sandboxes) ??
      refused(last.checked?.snapshots) ??
      (held.has(id) ? standsStill() : undefined),
    async storageRefusal(needed) {
      const { snapshots: stored, sandboxes: layers } = await lookAtBoth();
      if (stored.space.device === layers.space.device)
        return tooLarge(layers.space, layers.reserve, needed.snapshots + needed.sandboxes);
      return (
        tooLarge(stored.space, stored.reserve, needed.snapshots) ??
        tooLarge(layers.space, layers.reserve, needed.sandboxes)
      );
    },
    async disks() {
      const { snapshots: stored, sandboxes: layers } = await lookAtBoth();
      return { snapshots: stored.space, sandboxes: layers.space };
    },
    async check() {
      last.checked = await lookAtBoth();
      return last.checked;
    },
    seen: () => last.checked,
    isHeld: (id) => held.has(id),
  };
}

function standsStill(): AppError {
  return new AppError(
    "no_space",
    "the sandbox is held: the node's disk was short and the sandbox grew most; try again",
  );
}

function refused(seen: WatchedDisk | undefined): AppError | undefined {
  return seen?.level.is === "short" ? shortage(seen.space, seen.reserve, seen.level.of) : undefined;
}
