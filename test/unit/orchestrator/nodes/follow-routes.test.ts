import { expect, test } from "vitest";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import { followRoutes } from "../../../../orchestrator/nodes/follow-routes.ts";
import { createRoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";
import { gateway } from "../../../support/runner/promises.ts";

const record = (id: string, executionId: string, state: SandboxRecord["state"]) =>
  ({ id, executionId, state, nodeId: "n1", address: "198.51.100.7" }) as SandboxRecord;

/** An orchestrator that hears of changes from another one, and whose reads of the records the test delays. */
function orchestrator() {
  const records = new Map<string, SandboxRecord>();
  const routes = createRoutingTable({
    seeds: createSeeds("seed", []),
    place: () => ({ proxyUrl: "http://127.0.0.1:1", sameHost: false }),
  });
  const heard: ((ids: readonly string[] | undefined) => unknown)[] = [];
  const state = { delay: Promise.resolve() };
  const reads: (readonly string[])[] = [];
  followRoutes({
    feed: { on: (_kind, forget) => void heard.push(forget) },
    routes,
    store: {
      async getMany(ids) {
        reads.push(ids);
        const found = ids.flatMap((id) => records.get(id) ?? []);
        await state.delay;
        return found;
      },
      async routable() {
        const found = [...records.values()].filter((each) => each.state === "running");
        await state.delay;
        return found;
      },
    },
  });
  const set = (id: string, executionId: string, at: SandboxRecord["state"]) => {
    const now = record(id, executionId, at);
    records.set(id, now);
    return now;
  };
  const hear = async (...ids: string[]) => void (await heard[0]?.(ids));
  const hearAll = async () => void (await heard[0]?.(undefined));
  return { routes, set, state, reads, hear, hearAll };
}

test("a route that was learnt while an older record was read stays", async () => {
  const { routes, set, state, hear } = orchestrator();
  routes.add(set("i1", "e1", "running"));
  set("i1", "e1", "pausing");
  const reading = gateway();
  state.delay = reading.promise;
  const hearing = hear("i1");
  // A request has found meanwhile where a drain has taken the sandbox.
  await routes.suspend("i1", "e1");
  routes.add(set("i1", "e2", "running"));
  reading.resolve();
  await hearing;
  expect(routes.lookup("i1")?.executionId).toBe("e2");
});

test("a route that was learnt while the streams of another sandbox ended stays", async () => {
  const { routes, set, hear } = orchestrator();
  for (const id of ["i1", "i2"]) routes.add(set(id, `${id} first`, "running"));
  for (const id of ["i1", "i2"]) set(id, `${id} first`, "pausing");
  const ending = gateway();
  routes.onRemove((executionId) => (executionId === "i1 first" ? ending.promise : undefined));
  const hearing = hear("i1", "i2");
  await expect.poll(() => routes.lookup("i1")).toBeUndefined();
  await routes.suspend("i2", "i2 first");
  routes.add(set("i2", "i2 second", "running"));
  ending.resolve();
  await hearing;
  expect(routes.lookup("i2")?.executionId).toBe("i2 second");
});

test("a route that was learnt while all records were read is not taken for one of an ended sandbox", async () => {
  const { routes, set, state, hearAll } = orchestrator();
  routes.add(set("i1", "e1", "running"));
  const reading = gateway();
  state.delay = reading.promise;
  const hearing = hearAll();
  routes.add(set("i2", "e2", "running"));
  reading.resolve();
  await hearing;
  expect([...routes.running()].map(({ executionId }) => executionId)).toEqual(["e1", "e2"]);
});

test("routes of sandboxes that paused or ended go, and a failed pause brings the route of its execution back", async () => {
  const { routes, set, reads, hear } = orchestrator();
  routes.add(set("i1", "e1", "running"));
  routes.add(set("i2", "e2", "running"));
  set("i1", "e1", "pausing");
  set("i2", "e2", "gone");
  await hear("i1", "i2");
  expect(routes.size).toBe(0);
  expect(reads).toEqual([["i1", "i2"]]);
  set("i1", "e1", "running");
  await hear("i1", "i2");
  expect([...routes.running()].map(({ executionId }) => executionId)).toEqual(["e1"]);
});
