/**
 * Keeps a reserve of the node's disk free. When the disk is short, it refuses new work, drops what can be made again, and
 * holds the sandbox that grows most (frozen, nothing lost). It releases held sandboxes when there is room again, and ends
 * one held for too long.
 */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import { createDropping, type DropSources } from "./dropping.ts";
import { createGrowth, type Grower } from "./growth.ts";
import {
  type DiskLevel,
  levelOf,
  mayRelease,
  type ReadSpace,
  type Reserve,
  reserveOf,
  type Space,
  shortage,
  tooLarge,
} from "./space.ts";

const EVERY_MS = 500;
/** Time between the first two checks of who writes. */
const FIRST_LOOK_MS = 100;
/** How long the disk must have room before a sandbox is released. */
const ROOM_FOR_MS = 5_000;
/** So little is free that a disk counts as full. */
const FULL_BYTES = 8 * 1024 * 1024;
const FULL_INODES = 100;
const HELD_AT_MOST_MS = 300_000;
/** Pause between two ends of held sandboxes, in which the disk of the first one is freed. */
const BETWEEN_ENDS_MS = 30_000;

export interface Held extends Grower {
  /** Freezes all processes of a sandbox, or stops the work of a build. May be called again. */
  hold(): Promise<void>;
  release(): void;
  /** Ends the sandbox or build because it was held for too long. */
  end(): Promise<void>;
}

export interface ReserveDeps {
  readonly configuredMb: number | undefined;
  /** Directory that sandboxes write to. */
  readonly dataRoot: () => Promise<string>;
  /** Directory of stored memory. */
  readonly snapshots: string;
  readonly readSpace: ReadSpace;
  readonly now: () => number;
  readonly log: Log;
}

interface HeldSources {
  /** The sandboxes and builds that may be held. */
  readonly growers: () => readonly Held[];
  /** The set of held executions has changed. */
  readonly onChange: () => void;
  /** What the node drops before it holds or ends a sandbox. */
  readonly remakable: DropSources;
  /** The pressure has changed. */
  readonly onPressure: (pressure: Pressure) => void;
}

/** `settling`: there is room again, but not yet for long enough to make again what was dropped. */
type Pressure = "short" | "settling" | "none";

export interface DiskReserve {
  /** Why no sandbox or build can begin now; undefined while there is room. */
  refusal(): AppError | undefined;
  /** Why no snapshot of this sandbox can be written now. */
  snapshotRefusal(id: string): AppError | undefined;
  /** Why this number of bytes cannot be stored now. Measures the disks at each call. */
  storageRefusal(needed: Needed): Promise<AppError | undefined>;
  /** Measures the disks now. */
  disks(): Promise<Disks>;
  /** The disks and their reserves at the last check; undefined before the first. */
  seen(): { readonly snapshots: WatchedDisk; readonly sandboxes: WatchedDisk } | undefined;
  isHeld(id: string): boolean;
  /** Counts a sandbox that an earlier agent process froze as held. */
  adopt(id: string): void;
  /** Starts to watch the disk; before this call the reserve always reports room. */
  begin(sources: HeldSources): void;
  /** Held sandboxes stay held: the next agent adopts them. */
  stop(): Promise<void>;
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
}

interface Seen extends WatchedDisk {
  readonly level: DiskLevel;
}

export function createReserve(deps: ReserveDeps): DiskReserve {
  const { configuredMb, dataRoot, snapshots, now, log } = deps;
  let sources: HeldSources | undefined;
  let rounds: Loop | undefined;
  const growers = () => sources?.growers() ?? [];
  const onChange = () => sources?.onChange();
  const growth = createGrowth(now);
  const held = new Map<string, number>();
  const state = {
    sandboxes: undefined as Seen | undefined,
    snapshots: undefined as Seen | undefined,
    roomSince: undefined as number | undefined,
    /** Free bytes or inodes when the last sandbox was held. */
    freeAtHold: Number.POSITIVE_INFINITY,
    endedAt: Number.NEGATIVE_INFINITY,
    looked: false,
    pressure: "none" as Pressure,
  };
  const dropping = createDropping({
    measure: async () => deps.readSpace(await dataRoot()),
    isShort: () => state.sandboxes?.level.is === "short",
    log,
  });

  const look = async (directory: string): Promise<Seen> => {
    const space = await deps.readSpace(directory);
    const reserve = reserveOf(space, configuredMb);
    return { space, reserve, level: levelOf(space, reserve) };
  };

  const lookAtBoth = async () => {
    const [ofSnapshots, ofSandboxes] = await Promise.all([look(snapshots), dataRoot().then(look)]);
    return { snapshots: ofSnapshots, sandboxes: ofSandboxes };
  };

  const hold = async (grower: Held, free: number) => {
    state.freeAtHold = free;
    held.set(grower.id, now());
    log.warn({ id: grower.id, free }, "held the fastest growing sandbox, because the node's disk is short");
    await attempt(grower, () => grower.hold());
    onChange();
  };

  const attempt = async (grower: Held, work: () => Promise<void> | void) => {
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, id: grower.id }, "could not hold, release or end a sandbox, trying again");
    }
  };

  const onShort = async ({ space, level }: Seen) => {
    state.roomSince = undefined;
    press("short");
    if (level.is !== "short") return;
    const others = growers().filter(({ id }) => !held.has(id));
    if (!state.looked) {
      growth.look(others);
      await new Promise((resolve) => setTimeout(resolve, FIRST_LOOK_MS));
    }
    state.looked = true;
    const free = level.of === "bytes" ? space.freeBytes : space.freeInodes;
    // What can be made again goes first. A sandbox is held beside it only when the disk may be full before that is done.
    const makesRoom = sources !== undefined && dropping.step(level, sources.remakable);
    const waits = makesRoom && !level.urgent;
    if (waits) growth.look(others);
    // Holds one sandbox at a time: the free space shows whether it was the right one.
    // On a full disk the free space cannot shrink further, so it does not show who writes: a sandbox that is not held would
    // take the room that the agent's database needs.
    const full = free <= (level.of === "bytes" ? FULL_BYTES : FULL_INODES);
    const enough = waits || (held.size > 0 && free >= state.freeAtHold && !full);
    const grower = enough ? undefined : await growth.choose(others, level);
    const chosen = others.find(({ id }) => id === grower?.id);
    if (chosen !== undefined) await hold(chosen, free);
    for (const one of growers().filter(({ id }) => held.has(id))) await attempt(one, () => one.hold());
    if (!makesRoom) await endLongest();
  };

  const endLongest = async () => {
    const [longest] = [...held].sort(([, a], [, b]) => a - b);
    if (longest === undefined || now() - longest[1] < HELD_AT_MOST_MS || now() - state.endedAt < BETWEEN_ENDS_MS)
      return;
    const grower = growers().find(({ id }) => id === longest[0]);
    if (grower === undefined) return;
    state.endedAt = now();
    log.warn({ id: grower.id }, "ended a sandbox that was held for too long, because the node's disk is still short");
    await attempt(grower, () => grower.end());
  };

  const press = (pressure: Pressure) => {
    if (pressure === state.pressure) return;
    state.pressure = pressure;
    sources?.onPressure(pressure);
  };

  const onRoom = async (seen: Seen) => {
    if (state.pressure === "short") press("settling");
    state.freeAtHold = Number.POSITIVE_INFINITY;
    if (seen.level.is === "near") growth.look(growers());
    state.looked = seen.level.is === "near";
    if (held.size === 0 && state.pressure === "none") return;
    state.roomSince = mayRelease(seen.space, seen.reserve) ? (state.roomSince ?? now()) : undefined;
    if (state.roomSince === undefined || now() - state.roomSince < ROOM_FOR_MS) return;
    dropping.reset();
    press("none");
    if (held.size === 0) return;
    for (const grower of growers().filter(({ id }) => held.has(id))) {
      held.delete(grower.id);
      log.info({ id: grower.id }, "released a sandbox, because the node's disk has room again");
      await attempt(grower, () => grower.release());
    }
    onChange();
  };

  const round = async () => {
    const before = state.sandboxes?.level.is;
    const both = await lookAtBoth();
    Object.assign(state, both);
    const seen = both.sandboxes;
    if (seen.level.is === "short" && before !== "short")
      log.warn(
        { ...seen.space, ...seen.reserve, directory: await dataRoot() },
        "the node's disk is short: less is free than SVC_DISK_RESERVE_MB keeps in reserve",
      );
    const there = new Set(growers().map(({ id }) => id));
    for (const id of held.keys()) if (!there.has(id)) held.delete(id);
    await (seen.level.is === "short" ? onShort(seen) : onRoom(seen));
  };

  return {
    refusal: () => refused(state.sandboxes),
    snapshotRefusal: (id) =>
      refused(state.sandboxes) ?? refused(state.snapshots) ?? (held.has(id) ? standsStill() : undefined),
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
    seen: () =>
      state.snapshots === undefined || state.sandboxes === undefined
        ? undefined
        : { snapshots: state.snapshots, sandboxes: state.sandboxes },
    isHeld: (id) => held.has(id),
    adopt: (id) => void held.set(id, now()),
    begin(given) {
      sources = given;
      rounds ??= loop({ name: "disk reserve", everyMs: EVERY_MS, log }, round);
    },
    async stop() {
      await rounds?.stop();
      await dropping.settled();
    },
  };
}

function standsStill(): AppError {
  return new AppError(
    "no_space",
    "the sandbox is held: the node's disk was short and the sandbox grew most; try again",
  );
}

function refused(seen: Seen | undefined): AppError | undefined {
  return seen?.level.is === "short" ? shortage(seen.space, seen.reserve, seen.level.of) : undefined;
}
