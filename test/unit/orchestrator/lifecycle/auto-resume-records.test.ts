/** What a request is told of a sandbox while its records change, or cannot be read. */

import { describe, expect, test } from "vitest";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import type { EdgeRoute, RemovalListener } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import type { Core } from "../../../../orchestrator/lifecycle/core.ts";
import { createAutoResuming } from "../../../../orchestrator/lifecycle/pausing/auto-resume.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";

const LIMIT_MS = 200;

interface World {
  readonly record: () => Partial<SandboxRecord> | undefined;
  readonly isMoving?: boolean;
  /** The orchestrator knows the node. */
  readonly isKnown?: boolean;
  /** The execution was removed here. */
  readonly isRemoved?: boolean;
  readonly resume?: () => Promise<never>;
  /** How fast the orchestrator's clock goes. */
  readonly pace?: number;
}

function world({ record, isMoving = false, isKnown = true, isRemoved = false, resume, pace = 1 }: World) {
  const routes = new Map<string, EdgeRoute>();
  const removed: RemovalListener[] = [];
  const lists = { count: 0 };
  const begun = performance.now();
  const core = {
    store: {
      sandboxes: {
        get: () =>
          Promise.resolve().then(() => {
            const found = record();
            return found === undefined
              ? undefined
              : { id: "i1", executionId: "e1", nodeId: "n1", projectId: "p1", ...found };
          }),
      },
      drains: { isMoving: () => Promise.resolve(isMoving) },
      projects: { find: () => Promise.resolve({ id: "p1" }) },
      pausedSandboxes: {
        signers() {
          lists.count++;
          return Promise.resolve([]);
        },
      },
    },
    limits: { hours: () => 1, starts: () => ({ sandboxes: 1 }) },
    nodes: { place: () => (isKnown ? {} : undefined) },
    routes: {
      onRemove: (listener: RemovalListener) => void removed.push(listener),
      lookup: (id: string) => routes.get(id),
      add({ id, executionId }: SandboxRecord) {
        if (isKnown && !isRemoved) routes.set(id, { sandboxId: id, executionId } as EdgeRoute);
      },
    },
    seeds: createSeeds("seed", []),
    timeouts: { autoResumeTimeoutMs: LIMIT_MS },
    now: () => (performance.now() - begun) * pace,
    log: createLog({ component: "test", level: "silent" }),
  };
  const resuming = createAutoResuming({
    core: core as unknown as Core,
    resuming: {
      resume: resume ?? (() => Promise.reject(new Error("nothing is to be resumed"))),
      recover: () => Promise.resolve(),
    },
    limit: 10,
    projectOf: () => Promise.resolve(undefined),
  });
  return { ...resuming, removed, lists };
}

const ask = (given: World) => world(given).autoResume("i1", 80, {}, new AbortController().signal);

describe("a request for a sandbox", () => {
  test("that a drain has on its way for longer than the request may wait is told that it changes, not that it is gone", async () => {
    const record = () => ({ state: "paused" as const });
    expect(await ask({ record, isMoving: true })).toEqual({ is: "transitioning" });
    // Whichever of the two clocks is ahead.
    expect(await ask({ record, isMoving: true, pace: 1_000 })).toEqual({ is: "transitioning" });
  });

  test("that runs on a node which is not known here yet is told to come again", async () => {
    const record = () => ({ state: "running" as const });
    expect(await ask({ record })).toMatchObject({ is: "running" });
    expect(await ask({ record, isKnown: false })).toEqual({ is: "transitioning" });
    expect(await ask({ record, isRemoved: true })).toEqual({ is: "not_found" });
  });

  test("whose record cannot be read is not told that it is gone", async () => {
    const away = () => {
      throw new AppError("unavailable", "this orchestrator has lost its connection to the database: try again");
    };
    await expect(ask({ record: away })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("whose node cannot resume it is told no more than of one that never existed", async () => {
    const record = () => ({ state: "paused" as const, autoResume: true, snapshot: { id: "s1", memory: true } });
    const resume = () => Promise.reject(new AppError("snapshot_corrupt", "a secret place is damaged"));
    expect(await ask({ record, resume })).toEqual({ is: "not_found" });
    const busy = () => Promise.reject(new AppError("conflict", "the sandbox is changing state"));
    expect(await ask({ record, resume: busy })).toEqual({ is: "transitioning" });
  });
});

test("the list of paused sandboxes is read again when one has lost its route by a pause or a move", async () => {
  const { removed, lists, ...resuming } = world({ record: () => undefined });
  for (let times = 0; times < 2; times++) await resuming.pausedSandboxes();
  expect(lists.count).toBe(1);
  for (const listener of removed) await listener("e1", "i1", "killed");
  await resuming.pausedSandboxes();
  expect(lists.count).toBe(1);
  for (const listener of removed) await listener("e2", "i2", "paused");
  await resuming.pausedSandboxes();
  expect(lists.count).toBe(2);
});
