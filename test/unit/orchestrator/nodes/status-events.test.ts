/** What becomes of changes of nodes' statuses among their events. */

import { expect, test } from "vitest";
import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createStatusEvents, type StatusChange } from "../../../../orchestrator/nodes/telling/status-events.ts";
import type { NewNodeEvent } from "../../../../orchestrator/store/nodes/happening-record.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

function noting() {
  const noted: (readonly NewNodeEvent[])[] = [];
  const background = createBackground(log);
  const store = {
    note(events: readonly NewNodeEvent[]) {
      noted.push(events);
      return Promise.resolve();
    },
  };
  return { noted, background, told: createStatusEvents({ store, background }) };
}

const change = (over: Pick<StatusChange, "from" | "to"> & Partial<StatusChange>): StatusChange => ({
  nodeId: "n1",
  at: 5,
  why: undefined,
  ...over,
});

test.each<[Pick<StatusChange, "from" | "to"> & Partial<StatusChange>, readonly object[]]>([
  [{ from: "connecting", to: "ready" }, [{ kind: "returned" }, { kind: "ready" }]],
  [{ from: "draining", to: "ready" }, [{ kind: "ready" }]],
  [{ from: "ready", to: "draining" }, []],
  [{ from: "unhealthy", to: "draining" }, [{ kind: "returned" }]],
  [{ from: "ready", to: "unhealthy", why: "it is silent" }, [{ kind: "unreachable", detail: "it is silent" }]],
  [{ from: "ready", to: "connecting", why: "port 5011" }, [{ kind: "unreachable", detail: "port 5011" }]],
  [{ from: "unhealthy", to: "connecting", why: "port 5011" }, []],
])("of %j the events are %j", async (seen, events) => {
  const { noted, background, told } = noting();
  told(change(seen));
  await background.settled();
  expect(noted.flat()).toMatchObject(events);
});

test("changes that come at once are written together, and a write that fails prevents no later one", async () => {
  const { noted, background, told } = noting();
  for (let index = 0; index < 150; index++) told(change({ nodeId: `n${index}`, from: "draining", to: "ready" }));
  await background.settled();
  expect(noted.map((events) => events.length)).toEqual([100, 50]);
  const tries: number[] = [];
  const note = (events: readonly NewNodeEvent[]) =>
    tries.push(events.length) === 1 ? Promise.reject(new Error("the database is away")) : Promise.resolve();
  const failing = createStatusEvents({ background, store: { note } });
  for (let round = 0; round < 2; round++) {
    failing(change({ from: "draining", to: "ready" }));
    await background.settled();
  }
  expect(tries).toEqual([1, 1]);
});
