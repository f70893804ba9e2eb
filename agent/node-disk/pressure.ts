/**
 * Watches the node's disk against its reserve. When the disk is short, it drops what can be made again, and holds the
 * sandbox that grows most (frozen, nothing lost). It releases held sandboxes when there is room again, and ends one held
 * for too long.
 */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import { createDropping, type DropSources } from "./dropping.ts";
import { createGrowth, type Grower } from "./growth.ts";
import type { DiskReserve, WatchedDisk } from "./reserve.ts";
import { mayRelease } from "./space.ts";

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

export interface PressureDeps {
  readonly reserve: DiskReserve;
  /** Directory that sandboxes write to, for the log. */
  readonly dataRoot: () => Promise<string>;
  /** The sandboxes and builds that may be held. */
  readonly growers: () => readonly Held[];
  /** The set of held executions has changed. */
  readonly onChange: () => void;
  /** What the node drops before it holds or ends a sandbox. */
  readonly remakable: DropSources;
  /** The pressure has changed. */
  readonly onPressure: (pressure: Pressure) => void;
  readonly now: () => number;
  readonly log: Log;
}

/** `settling`: there is room again, but not yet for long enough to make again what was dropped. */
type Pressure = "short" | "settling" | "none";

export interface DiskPressure {
  /** Held sandboxes stay held: the next agent finds them frozen. */
  stop(): Promise<void>;
}

export function startPressure(deps: PressureDeps): DiskPressure {
  const { reserve, growers, onChange, remakable, onPressure, now, log } = deps;
  const { held } = reserve;
  const growth = createGrowth(now);
  const state = {
    roomSince: undefined as number | undefined,
    /** Free bytes or inodes when the last sandbox was held. */
    freeAtHold: Number.POSITIVE_INFINITY,
    endedAt: Number.NEGATIVE_INFINITY,
    looked: false,
    pressure: "none" as Pressure,
  };
  const dropping = createDropping({
    measure: async () => (await reserve.disks()).sandboxes,
    isShort: () => reserve.seen()?.sandboxes.level.is === "short",
    log,
  });

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

  const onShort = async ({ space, level }: WatchedDisk) => {
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
    const makesRoom = dropping.step(level, remakable);
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
    onPressure(pressure);
  };

  const onRoom = async (seen: WatchedDisk) => {
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
    const before = reserve.seen()?.sandboxes.level.is;
    const { sandboxes: seen } = await reserve.check();
    if (seen.level.is === "short" && before !== "short")
      log.warn(
        { ...seen.space, ...seen.reserve, directory: await deps.dataRoot() },
        "the node's disk is short: less is free than SVC_DISK_RESERVE_MB keeps in reserve",
      );
    const there = new Set(growers().map(({ id }) => id));
    for (const id of held.keys()) if (!there.has(id)) held.delete(id);
    await (seen.level.is === "short" ? onShort(seen) : onRoom(seen));
  };

  const rounds = loop({ name: "disk reserve", everyMs: EVERY_MS, log }, round);
  return {
    async stop() {
      await rounds.stop();
      await dropping.settled();
    },
  };
}
