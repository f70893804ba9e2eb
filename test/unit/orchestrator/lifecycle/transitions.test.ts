/**
 * The state machine under random interleavings: at most one live execution for an id, no lost kill, every waiter resolves.
 */

import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEnding, type Ending } from "../../../../orchestrator/lifecycle/ending/kill.ts";
import type { Transitions } from "../../../../orchestrator/lifecycle/transitions.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import type { RoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import type { Aim } from "../../../../orchestrator/store/operations/record.ts";
import type { NewSandbox } from "../../../../orchestrator/store/sandboxes/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { isError } from "../../../../shared/http/errors.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import type { SandboxState } from "../../../../shared/states/sandbox-state.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import { openTestDatabase, tries } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const ID = "isandbox";

function sandbox(executionId: string, over: Partial<NewSandbox> = {}): NewSandbox {
  return newSandbox({ id: ID, executionId, ...over });
}

/** A world of one sandbox: a node that runs executions, and the platform around it. */
interface World {
  readonly opened: OpenedDatabase;
  readonly store: Store;
  readonly routes: RoutingTable;
  readonly transitions: Transitions;
  readonly ending: Ending;
  readonly live: Set<string>;
  readonly ended: Set<string>;
}

async function world(step: () => Promise<void>): Promise<World> {
  const opened = await openTestDatabase();
  const store = createStore(opened.database, () => 5, testSeal);
  const live = new Set<string>();
  const ended = new Set<string>();
  const agent = {
    async stopExecution({ params }: { params: { executionId: string } }) {
      ended.add(params.executionId);
      await step();
      live.delete(params.executionId);
    },
  };
  const nodes = { agent: () => agent, list: () => [], freed: () => undefined } as unknown as Nodes;
  const core = lifecycleCore({ store, nodes });
  const { routes, transitions } = core;
  const ending = createEnding({ core, observe: () => undefined });
  return { opened, store, routes, transitions, ending, live, ended };
}

type StateAim = Exclude<Aim, "network" | "gone" | "rewinding">;
const VIA = { running: "starting", paused: "pausing", snapshotting: "snapshotting" } as const;

/** Starts, pauses or resumes by the usual steps: a move in the store, work on the node, a move in the store. */
async function go(w: World, aim: StateAim, step: () => Promise<void>): Promise<SandboxState | undefined> {
  return w.transitions.perform({
    sandboxId: ID,
    aim,
    waitMs: 2_000,
    work: async () => {
      const via: SandboxState = VIA[aim];
      const to: SandboxState = aim === "snapshotting" ? "running" : aim;
      const executionId = via === "starting" ? newExecutionId() : undefined;
      const begun = await w.store.move({
        id: ID,
        to: via,
        set: { deadlineAt: 10, ...(executionId === undefined ? {} : { executionId }) },
      });
      if (begun === undefined) return undefined;
      await step();
      if (executionId !== undefined && !w.ended.has(executionId)) w.live.add(executionId);
      if (aim === "paused") {
        await w.routes.remove(ID, begun.executionId, "paused");
        w.live.delete(begun.executionId);
      }
      const done = await w.store.move({
        id: ID,
        to,
        when: { executionId: begun.executionId, from: [via] },
        set: { address: "127.0.0.1" },
      });
      if (done === undefined) w.live.delete(begun.executionId);
      else if (to === "running") w.routes.add(done);
      return done?.state;
    },
  });
}

describe("random interleavings", () => {
  test("leave one live execution at most, no route to a dead one, final kills, and no caller without an answer", async () => {
    const operation = fc.constantFrom<"kill" | StateAim>("running", "paused", "snapshotting", "kill", "kill");
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(operation, { minLength: 1, maxLength: 9 }),
        async (scheduler, operations) => {
          const step = () => scheduler.schedule(Promise.resolve());
          const w = await world(step);
          try {
            const first = newExecutionId();
            await w.store.sandboxes.add(sandbox(first), { sandboxes: 10 });
            const running = await w.store.move({ id: ID, to: "running", set: { address: "127.0.0.1" } });
            w.live.add(first);
            if (running !== undefined) w.routes.add(running);
            const answers = operations.map(async (each) => {
              await step();
              return each === "kill" ? w.ending.kill(ID, "request") : go(w, each, step);
            });
            const all = Promise.allSettled(answers);
            const progress = { settled: false };
            void all.then(() => {
              progress.settled = true;
            });
            while (!progress.settled) {
              if (scheduler.count() > 0) await scheduler.waitOne();
              else await new Promise((resolve) => setImmediate(resolve));
              expect(w.live.size).toBeLessThanOrEqual(1);
            }
            for (const answer of await all) {
              if (answer.status === "rejected") expect(isError(answer.reason, "conflict")).toBe(true);
            }
            const record = await w.store.sandboxes.get(ID);
            const route = w.routes.lookup(ID);
            if (operations.includes("kill")) {
              expect(record?.state).toBe("gone");
              const events = await w.store.events.list("p", { offset: 0, limit: 50, ascending: true });
              expect(events.map(({ type }) => type)).toEqual(["sandbox.lifecycle.killed"]);
            }
            expect(["running", "paused", "gone"]).toContain(record?.state);
            expect([...w.live]).toEqual(record?.state === "running" ? [record.executionId] : []);
            expect(route?.executionId).toBe(record?.state === "running" ? record.executionId : undefined);
          } finally {
            await w.opened.close();
          }
        },
      ),
      { numRuns: tries(60) },
    );
  }, 180_000);
});

describe("concurrent calls", () => {
  let w: World;
  beforeEach(async () => {
    w = await world(() => Promise.resolve());
  });
  afterEach(() => w.opened.close());

  test("with one aim share one run and its result", async () => {
    let runs = 0;
    const work = async () => {
      await Promise.resolve();
      return ++runs;
    };
    const all = Array.from({ length: 5 }, () =>
      w.transitions.perform({ sandboxId: ID, aim: "paused", waitMs: 100, work }),
    );
    expect(await Promise.all(all)).toEqual([1, 1, 1, 1, 1]);
    expect(w.transitions.current(ID)).toBeUndefined();
  });

  test("with one aim share one failure", async () => {
    const work = () => Promise.reject(new Error("broken"));
    const all = [1, 2].map(() => w.transitions.perform({ sandboxId: ID, aim: "paused", waitMs: 100, work }));
    for (const { status } of await Promise.allSettled(all)) expect(status).toBe("rejected");
  });

  test("with another aim wait, and give up after their limit", async () => {
    void w.transitions.perform({
      sandboxId: ID,
      aim: "paused",
      waitMs: 100,
      work: () => new Promise<void>(() => undefined),
    });
    const late = w.transitions.perform({ sandboxId: ID, aim: "running", waitMs: 20, work: () => Promise.resolve() });
    await expect(late).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("ends", () => {
  let w: World;
  beforeEach(async () => {
    w = await world(() => Promise.resolve());
  });
  afterEach(() => w.opened.close());

  async function running(over: Partial<NewSandbox>): Promise<string> {
    const executionId = newExecutionId();
    await w.store.sandboxes.add(sandbox(executionId, over), { sandboxes: 10 });
    await w.store.move({ id: ID, to: "running", set: { address: "127.0.0.1" } });
    return executionId;
  }

  test("an expiry that finds the end moved does nothing, and a kill that joined it still kills", async () => {
    await running({ endAt: 1_000 });
    const record = await w.store.sandboxes.get(ID);
    if (record === undefined) throw new Error("no record");
    const expiring = w.ending.expire(record);
    const killing = w.ending.kill(ID, "request");
    expect(await expiring).toBe(false);
    expect(await killing).toBe(true);
    expect((await w.store.sandboxes.get(ID))?.state).toBe("gone");
  });

  test("a report about another execution changes nothing", async () => {
    await running({});
    expect(
      await w.ending.ended({ sandboxId: ID, executionId: newExecutionId(), nodeId: "n1" }, { reason: "exited" }),
    ).toBe(false);
    expect((await w.store.sandboxes.get(ID))?.state).toBe("running");
  });

  test("a kill that a crash interrupted is finished by the next kill", async () => {
    const executionId = await running({});
    await w.store.move({ id: ID, to: "killing", set: { deadlineAt: 7, end: { reason: "request" } } });
    expect((await w.store.sandboxes.stuck(7, 10)).map(({ id }) => id)).toEqual([ID]);
    expect(await w.ending.kill(ID, "abandoned")).toBe(true);
    expect(w.ended).toEqual(new Set([executionId]));
    expect(await w.store.sandboxes.get(ID)).toMatchObject({ state: "gone", end: { reason: "request" } });
  });

  test("an exit that the node reports during a kill finishes it with the reason and the time of the kill", async () => {
    const executionId = await running({});
    await w.store.move({ id: ID, to: "killing", set: { endAt: 4, deadlineAt: 7, end: { reason: "timeout" } } });
    const exit = { sandboxId: ID, executionId, nodeId: "n1" };
    expect(await w.ending.ended(exit, { reason: "exited", exitCode: 137 })).toBe(true);
    const record = await w.store.sandboxes.get(ID);
    expect(record).toMatchObject({ state: "gone", endedAt: 4, end: { reason: "timeout" } });
    expect(record?.end?.exitCode).toBeUndefined();
  });

  test("an exit is stored with its code and detail, and a second report changes nothing", async () => {
    const executionId = await running({});
    const exit = { sandboxId: ID, executionId, nodeId: "n1" };
    const end = { reason: "out_of_memory", exitCode: 137, detail: "init was killed" } as const;
    expect(await w.ending.ended(exit, end)).toBe(true);
    expect(await w.ending.ended(exit, { reason: "lost" })).toBe(false);
    expect(await w.store.sandboxes.get(ID)).toMatchObject({ state: "gone", endedAt: 5, end });
  });

  test("no sandbox is gone without a reason", async () => {
    await running({});
    expect(await w.store.move({ id: ID, to: "gone" })).toBeUndefined();
    expect((await w.store.sandboxes.get(ID))?.state).toBe("running");
  });

  test("a start that returns after its kill does not bring the route back", async () => {
    await running({});
    const record = await w.store.sandboxes.get(ID);
    await w.ending.kill(ID, "request");
    if (record !== undefined) w.routes.add(record);
    expect(w.routes.lookup(ID)).toBeUndefined();
  });

  test("the removal of a route waits for its listeners", async () => {
    const executionId = await running({});
    const record = await w.store.sandboxes.get(ID);
    if (record !== undefined) w.routes.add(record);
    const told: string[] = [];
    w.routes.onRemove(async (execution) => {
      await Promise.resolve();
      told.push(execution);
    });
    await w.ending.kill(ID, "request");
    expect(told).toEqual([executionId]);
  });
});
