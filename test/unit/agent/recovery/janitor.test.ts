import { expect, test } from "vitest";
import { createSweep } from "../../../../agent/recovery/janitor.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { agentParts, startRequest } from "../../../support/fakes/agent-parts.ts";
import { fakeEngine } from "../../../support/fakes/fake-engine.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

test("a container without an owner is removed when it is older than any start takes, others are left alone", async () => {
  const engine = fakeEngine();
  const parts = agentParts(engine);
  await parts.sandboxes.start("6f1f8f0e-0000-4000-8000-000000000001", startRequest());
  const { containers } = engine.machine().docker;
  const [mine] = engine.containers.values();
  if (mine === undefined) throw new Error("nothing was started");
  const stranger = await containers.create({ ...mine.spec, name: "lost" });
  const clock = { now: 0 };
  const sweep = createSweep({ containers, stores: parts.stores, now: () => clock.now, log });
  await sweep();
  clock.now = 39_000;
  await sweep();
  expect(engine.containers.has(stranger)).toBe(true);
  clock.now = 41_000;
  await sweep();
  expect([...engine.containers.keys()]).toEqual([mine.id]);
  await parts.stop();
});

test("a container that got its owner between two rounds stays", async () => {
  const engine = fakeEngine();
  const parts = agentParts(engine);
  await parts.sandboxes.start("6f1f8f0e-0000-4000-8000-000000000002", startRequest());
  const nobody = openStores(":memory:", testSeal);
  const owners = { current: nobody };
  const stores = {
    ...nobody,
    get containers() {
      return owners.current.containers;
    },
  };
  const clock = { now: 0 };
  const sweep = createSweep({ containers: engine.machine().docker.containers, stores, now: () => clock.now, log });
  await sweep();
  clock.now = 60_000;
  owners.current = parts.stores;
  await sweep();
  expect(engine.containers.size).toBe(1);
  nobody.close();
  await parts.stop();
});
