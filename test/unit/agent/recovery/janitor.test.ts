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
  engine.forget(stranger);
  const clock = { now: 0 };
  const sweep = createSweep({ containers, stores: parts.stores, now: () => clock.now, log });
  await sweep();
  clock.now = 69_000;
  await sweep();
  expect(engine.containers.has(stranger)).toBe(true);
  clock.now = 71_000;
  await sweep();
  expect([...engine.containers.keys()]).toEqual([mine.id]);
  await parts.stop();
});

test("a container that the agent still works on stays for as long as that takes, and is removed when its removal has failed", async () => {
  const engine = fakeEngine();
  const parts = agentParts(engine);
  await parts.sandboxes.start("6f1f8f0e-0000-4000-8000-000000000003", startRequest());
  const { containers } = engine.machine().docker;
  const [mine] = engine.containers.values();
  if (mine === undefined) throw new Error("nothing was started");
  const copy = await containers.create({ ...mine.spec, name: "copy of a large disk" });
  const clock = { now: 0 };
  const sweep = createSweep({ containers, stores: parts.stores, now: () => clock.now, log });
  for (; clock.now < 1_000_000; clock.now += 120_000) await sweep();
  expect(engine.containers.has(copy)).toBe(true);
  engine.fail((step) => {
    if (step === "remove") throw new Error("Docker is away");
  });
  await expect(containers.remove(copy)).rejects.toThrow("Docker is away");
  engine.fail(() => undefined);
  await sweep();
  clock.now += 120_000;
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
  for (const id of engine.containers.keys()) engine.forget(id);
  await sweep();
  clock.now = 80_000;
  owners.current = parts.stores;
  await sweep();
  expect(engine.containers.size).toBe(1);
  nobody.close();
  await parts.stop();
});
