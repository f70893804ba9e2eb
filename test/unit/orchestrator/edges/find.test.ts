import { expect, test } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { findSandbox } from "../../../../orchestrator/edges/find.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";

type State = SandboxRecord["state"];

/** An orchestrator whose records of the sandbox are these, one at each look, and the last one again and again. */
function platform(states: readonly (State | undefined)[], { moving = false, routable = true } = {}) {
  const routes = new Map<string, EdgeRoute>();
  let looks = 0;
  const record = (state: State) => ({ id: "i1", executionId: "e1", state }) as SandboxRecord;
  const find = findSandbox(
    {
      sandboxes: {
        get() {
          const state = states[Math.min(looks++, states.length - 1)];
          return Promise.resolve(state === undefined ? undefined : record(state));
        },
      },
      drains: { isMoving: () => Promise.resolve(moving) },
    },
    {
      lookup: (id) => routes.get(id),
      add({ id, executionId }) {
        if (routable) routes.set(id, { sandboxId: id, executionId } as EdgeRoute);
      },
    },
  );
  return { find: () => find("i1"), routes };
}

const ROUTE = { sandboxId: "i1", executionId: "e1" };

test.each<readonly [State | undefined, object]>([
  [undefined, { is: "not_found" }],
  ["gone", { is: "not_found" }],
  ["killing", { is: "not_found" }],
  ["pausing", { is: "paused", moving: false }],
  ["paused", { is: "paused", moving: false }],
  ["starting", { is: "transitioning" }],
  ["rewinding", { is: "transitioning" }],
  ["running", { is: "running", route: ROUTE }],
  ["snapshotting", { is: "running", route: ROUTE }],
])("a sandbox whose record says '%s' is found so", async (state, found) => {
  expect(await platform([state]).find()).toEqual(found);
});

test.each<State>(["pausing", "paused", "starting"])(
  "a sandbox that a drain has taken away is on its way while its record says '%s'",
  async (state) => {
    expect(await platform([state], { moving: true }).find()).toEqual({ is: "paused", moving: true });
  },
);

test("a sandbox that arrived between the two looks is found where it runs", async () => {
  expect(await platform(["paused", "running"]).find()).toEqual({ is: "running", route: ROUTE });
});

test("a sandbox that another orchestrator has started gets its route here, in place of the former one", async () => {
  const { find, routes } = platform(["running"]);
  routes.set("i1", { sandboxId: "i1", executionId: "e0" } as EdgeRoute);
  expect(await find()).toEqual({ is: "running", route: ROUTE });
});

test("a sandbox whose execution is over here, though its record does not say so yet, is about to change", async () => {
  expect(await platform(["running"], { routable: false }).find()).toEqual({ is: "transitioning" });
});
