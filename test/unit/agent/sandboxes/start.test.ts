/** Where a start gets its container from: the sources of each origin, in their order. */

import { expect, test } from "vitest";
import type { Launched, LaunchSpec } from "../../../../agent/sandboxes/become-sandbox.ts";
import { createStart, type StartDeps } from "../../../../agent/sandboxes/start.ts";
import type { StartRequest } from "../../../../shared/agent-api/routes.ts";
import { createKeyedMutex } from "../../../../shared/program/keyed-mutex.ts";
import { startRequest } from "../../../support/fakes/agent-parts.ts";

const never = new AbortController().signal;
const MEMORY = { is: "snapshot", snapshotId: "of-template", memory: true } as const;

/** Every source answers undefined but the one that `has`, from its `onlyAt`th question on. */
async function asked(body: Partial<StartRequest>, has: string, onlyAt = 1): Promise<string[]> {
  const order: string[] = [];
  const source = (name: string) => (_spec: LaunchSpec) => {
    order.push(name);
    const times = order.filter((one) => one === name).length;
    return Promise.resolve(name === has && times >= onlyAt ? ({} as Launched) : undefined);
  };
  const names = ["pool", "boot", "pooledMemory", "snapshot", "frozen", "stored"] as const;
  const sources = Object.fromEntries(names.map((name) => [name, source(name)])) as unknown as StartDeps["sources"];
  const stores = {
    builds: { get: () => ({ result: { snapshot: { snapshotId: "of-template" } } }) },
    snapshots: { get: (id: string) => ({ id, memory: true, state: "stored" }) },
  } as unknown as StartDeps["stores"];
  const startCommand = () => Promise.resolve(void order.push("start command"));
  const start = createStart({ sources, mutex: createKeyedMutex(), stores, startCommand });
  await start({ executionId: "one", body: startRequest(body) }, never);
  return order;
}

test("a new sandbox comes from the pool, else from a boot", async () => {
  expect(await asked({}, "pool")).toEqual(["pool", "start command"]);
  expect(await asked({}, "boot")).toEqual(["pool", "boot", "start command"]);
});

test("a start asks the pool again after a boot that had got an unusable container of the pool", async () => {
  expect(await asked({}, "boot", 2)).toEqual(["pool", "boot", "pool", "boot", "start command"]);
});

test("a new sandbox of a template with memory comes from a pooled copy of it, else from a new copy", async () => {
  expect(await asked({ origin: MEMORY }, "snapshot")).toEqual(["pooledMemory", "snapshot", "start command"]);
});

test.each([
  ["another snapshot than its template's", { ...MEMORY, snapshotId: "another" }],
  ["the disk alone of its template's snapshot", { ...MEMORY, memory: false }],
])("a start from %s never takes a pooled copy", async (_, origin) => {
  expect(await asked({ origin }, "snapshot")).toEqual(["snapshot", "start command"]);
});

test("a resume thaws the frozen container, else restores what is stored", async () => {
  const origin = { is: "paused", snapshotId: "one", memory: true } as const;
  expect(await asked({ origin }, "frozen")).toEqual(["frozen", "start command"]);
  expect(await asked({ origin }, "stored")).toEqual(["frozen", "stored", "start command"]);
});
