/** Drops what the node can make again while its disk is short, one kind after the other, and logs what each step freed. */

import { withDeadline } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Drop, planDrop, type Remakable } from "./drop-plan.ts";
import type { DiskLevel, Space } from "./space.ts";

/** After this time a step no longer keeps the agent from holding sandboxes; it begins with nothing else. */
const STEP_LIMIT_MS = 10_000;

const NAMES: { readonly [Kind in keyof Remakable]: string } = {
  held: "held snapshots, which no record names",
  pool: "warm pool",
  frozen: "frozen containers of paused sandboxes",
  layers: "cached layers of builds",
};

export interface DropSources {
  readonly there: () => Remakable;
  /** Has no effect on what was claimed, resumed or used meanwhile. */
  readonly drop: (of: keyof Remakable, id: string) => Promise<void>;
  /** Resolves when the files of what was dropped are deleted. */
  readonly settled: () => Promise<void>;
}

export interface DroppingDeps {
  readonly measure: () => Promise<Space>;
  /** Whether the last check found the disk short. */
  readonly isShort: () => boolean;
  readonly log: Log;
}

export interface Dropping {
  /** Begins the next step if none is under way. True while one is: it may make enough room. */
  step(level: DiskLevel, sources: DropSources): boolean;
  /** Forgets what could not be dropped, so that the next shortage tries it again. */
  reset(): void;
  /** Waits for the step under way. */
  settled(): Promise<void>;
}

export function createDropping({ measure, isShort, log }: DroppingDeps): Dropping {
  const tried = new Set<string>();
  let underWay: Promise<void> | undefined;

  const run = async ({ of, ids }: Drop, sources: DropSources) => {
    const before = await measure();
    const state = { count: 0, over: false };
    const work = async () => {
      for (const id of ids) {
        if (state.over || !isShort()) break;
        tried.add(id);
        try {
          await sources.drop(of, id);
          state.count++;
        } catch (error) {
          log.warn({ err: error, what: NAMES[of], id }, "could not drop what can be made again");
        }
      }
      await sources.settled();
    };
    state.over = await withDeadline(
      work().then(() => false),
      STEP_LIMIT_MS,
      () => true,
    );
    const after = await measure();
    log.warn(
      {
        what: NAMES[of],
        count: state.count,
        freedBytes: Math.max(0, after.freeBytes - before.freeBytes),
        freedInodes: Math.max(0, after.freeInodes - before.freeInodes),
        freeBytes: after.freeBytes,
      },
      "dropped what nothing needs at once, because the node's disk is short",
    );
  };

  return {
    step(level, sources) {
      if (underWay !== undefined) return true;
      const drop = planDrop(level, sources.there(), tried);
      if (drop === undefined) return false;
      underWay = run(drop, sources)
        .catch((error: unknown) =>
          log.warn({ err: error, what: NAMES[drop.of] }, "could not drop what can be made again"),
        )
        .finally(() => {
          underWay = undefined;
        });
      return true;
    },
    reset: () => tried.clear(),
    settled: async () => underWay,
  };
}
