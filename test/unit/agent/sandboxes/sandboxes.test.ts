/**
 * Sandboxes of an agent on a machine in memory: they start, stop, get another policy and end by themselves, at every step.
 */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { CLOSED, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { liveParts, type Parts, startRequest } from "../../../support/fakes/agent-parts.ts";
import type { FakeEngine } from "../../../support/fakes/fake-engine.ts";
import { gateway } from "../../../support/runner/promises.ts";

function nothingLeft(engine: FakeEngine, { stores }: Parts): void {
  expect({
    containers: [...engine.containers.keys()],
    slots: [...engine.slots],
    annotations: [...engine.annotations.keys()],
    rules: [...engine.firewall.keys()],
    containerRows: stores.containers.all(),
    executionRows: stores.executions.all(),
  }).toEqual({ containers: [], slots: [], annotations: [], rules: [], containerRows: [], executionRows: [] });
}

const COLD_STEPS = ["link", "pin", "create", "annotations", "start", "inspect", "ready", "init", "open"];

test.each(COLD_STEPS)("a cold start that fails at %s leaves nothing behind", async (failing) => {
  const { engine, parts } = liveParts();
  engine.fail((step) => {
    if (step === failing) throw new Error(`planned failure of ${step}`);
  });
  const id = randomUUID();
  await expect(parts.sandboxes.start(id, startRequest())).rejects.toThrow();
  await parts.settled();
  await expect.poll(() => engine.slots.size).toBe(0);
  nothingLeft(engine, parts);
  expect(parts.sandboxes.get(id)).toBeUndefined();
});

test.each(COLD_STEPS)("a stop while the start is at %s wins and leaves nothing behind", async (during) => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  const body = startRequest();
  let stopping: Promise<void> | undefined;
  engine.fail((step) => {
    if (step === during) stopping ??= parts.sandboxes.stop(id);
  });
  await expect(parts.sandboxes.start(id, body)).rejects.toMatchObject({ code: "conflict" });
  await stopping;
  await parts.settled();
  await expect.poll(() => engine.slots.size).toBe(0);
  nothingLeft(engine, parts);
  expect(parts.sandboxes.route(body.sandboxId)).toBeUndefined();
  await expect(parts.sandboxes.start(id, body)).rejects.toMatchObject({ code: "conflict" });
});

test("a start that a stop ends is refused with what its caller can know and do", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  let stopping: Promise<void> | undefined;
  engine.fail((step) => {
    if (step === "ready") stopping ??= parts.sandboxes.stop(id);
  });
  await expect(parts.sandboxes.start(id, startRequest())).rejects.toMatchObject({
    code: "conflict",
    message: "the sandbox was killed while it started, or its caller had left: start it again",
  });
  await stopping;
  await parts.settled();
});

test("the address is pinned before the container starts and opened only for its owner", async () => {
  const { engine, parts } = liveParts();
  await parts.sandboxes.start(randomUUID(), startRequest());
  const order = engine.steps.filter((step) => ["pin", "start", "init", "open"].includes(step));
  expect(order.indexOf("pin")).toBeLessThan(order.indexOf("start"));
  expect(order.indexOf("start")).toBeLessThan(order.indexOf("open"));
  expect([...engine.firewall.values()].map(({ open }) => open)).toEqual([true]);
});

test("the policy is with the kernel and the egress process before the network opens", async () => {
  const { engine, parts } = liveParts();
  const egress = { ...CLOSED, allowDomains: ["example.com"] };
  const body = startRequest({ egress });
  const executionId = randomUUID();
  await parts.sandboxes.start(executionId, body);
  expect(engine.steps.indexOf("set")).toBeLessThan(engine.steps.indexOf("open"));
  expect([...engine.firewall.values()]).toMatchObject([{ open: true, policy: { redirected: true } }]);
  expect([...engine.egress.values()]).toMatchObject([{ executionId, sandboxId: body.sandboxId, policy: egress }]);
  await parts.sandboxes.stop(executionId);
  expect(engine.egress.size).toBe(0);
});

describe("another policy", () => {
  const to = { ...CLOSED, allowRanges: ["203.0.113.0/24"] };
  const started = async () => {
    const { engine, parts } = liveParts();
    const executionId = randomUUID();
    await parts.sandboxes.start(executionId, startRequest());
    const replace = () =>
      parts.sandboxes.changeEgress(executionId, to, {
        enforce: ({ executionId, sandboxId, container, egress: from }) =>
          parts.gate.replace(container.slot, { executionId, sandboxId }, { from, to }),
        after: async () => undefined,
      });
    const before = engine.steps.length;
    const policies = () => ({
      kernel: [...engine.firewall.values()].map(({ open, policy }) => (open ? policy?.allowed.length : "closed")),
      process: [...engine.egress.values()].map(({ policy }) => policy),
      row: parts.stores.executions.all().map(({ egress }) => egress),
      live: parts.sandboxes.running().map(({ egress }) => egress),
    });
    return { engine, parts, executionId, replace, policies, steps: () => engine.steps.slice(before) };
  };

  test("closes, updates the egress process, then opens with the new policy, which is stored", async () => {
    const { replace, steps, policies } = await started();
    await replace();
    expect(steps()).toEqual(["close", "set", "open"]);
    expect(policies()).toEqual({ kernel: [1], process: [to], row: [to], live: [to] });
  });

  test("is in force and stored before the sandbox's own part is done, also when that part fails", async () => {
    const { parts, executionId, policies } = await started();
    const inForce = { kernel: [1], process: [to], row: [to], live: [to] };
    let seen: unknown;
    const replaced = parts.sandboxes.changeEgress(executionId, to, {
      enforce: ({ executionId, sandboxId, container, egress: from }) =>
        parts.gate.replace(container.slot, { executionId, sandboxId }, { from, to }),
      after: async () => {
        seen = policies();
        throw new Error("fails");
      },
    });
    await expect(replaced).rejects.toThrow("fails");
    expect(seen).toEqual(inForce);
    expect(policies()).toEqual(inForce);
  });

  test("is in force also while the egress process is down, which lets nothing through", async () => {
    const { engine, replace, policies } = await started();
    Object.assign(engine.egressProcess, { problem: "it ended" });
    engine.fail((name) => {
      if (name === "set") throw new Error("it does not run");
    });
    await replace();
    expect(policies()).toEqual({ kernel: [1], process: [to], row: [to], live: [to] });
  });

  test.each(["set", "open"])("that fails at %s leaves the old one in force everywhere", async (step) => {
    const { engine, replace, policies } = await started();
    let failed = false;
    engine.fail((name) => {
      if (name !== step || failed) return;
      failed = true;
      throw new Error("fails");
    });
    await expect(replace()).rejects.toMatchObject({ code: "unavailable" });
    expect(policies()).toEqual({ kernel: [0], process: [OPEN], row: [OPEN], live: [OPEN] });
  });

  test("when neither policy can be enforced the sandbox stays closed, and the error says that", async () => {
    const { engine, replace, policies } = await started();
    engine.fail((name) => {
      if (name === "open") throw new Error("fails");
    });
    await expect(replace()).rejects.toThrow(/network is closed/);
    expect(policies()).toMatchObject({ kernel: ["closed"], row: [OPEN] });
  });

  test("is refused for a missing sandbox and for one that does not run", async () => {
    const { engine, parts, executionId, replace } = await started();
    await expect(async () =>
      parts.sandboxes.changeEgress(randomUUID(), to, { enforce: async () => undefined, after: async () => undefined }),
    ).rejects.toMatchObject({
      status: 404,
    });
    const go = gateway();
    engine.fail((name) => (name === "signal" ? go.promise : undefined));
    const stopped = parts.sandboxes.stop(executionId);
    await expect(async () => replace()).rejects.toMatchObject({ status: 409 });
    await expect.poll(() => engine.steps.includes("signal")).toBe(true);
    go.resolve();
    await stopped;
  });

  test("a stop waits for it, and ends with everything closed", async () => {
    const { engine, parts, executionId, replace } = await started();
    const go = gateway();
    engine.fail((name) => (name === "set" ? go.promise : undefined));
    const replaced = replace();
    await expect.poll(() => engine.steps.includes("set")).toBe(true);
    const stopped = parts.sandboxes.stop(executionId);
    go.resolve();
    await replaced;
    await stopped;
    expect([...engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
    expect(engine.egress.size).toBe(0);
  });
});

test("the same execution started twice is one container and one answer", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  const body = startRequest();
  const [first, second] = await Promise.all([parts.sandboxes.start(id, body), parts.sandboxes.start(id, body)]);
  const third = await parts.sandboxes.start(id, body);
  expect(second).toEqual(first);
  expect(third).toEqual(first);
  expect(engine.containers.size).toBe(1);
});

test("an execution id cannot be used for another sandbox, nor a sandbox run twice", async () => {
  const { parts } = liveParts();
  const id = randomUUID();
  const body = startRequest();
  await parts.sandboxes.start(id, body);
  await expect(parts.sandboxes.start(id, startRequest())).rejects.toMatchObject({ code: "conflict" });
  await expect(parts.sandboxes.start(randomUUID(), body)).rejects.toMatchObject({ code: "conflict" });
});

test("a stopped execution is unroutable at once, its streams end before its processes, and it never comes back", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  const body = startRequest();
  await parts.sandboxes.start(id, body);
  const stopped = parts.sandboxes.stop(id);
  expect(parts.sandboxes.route(body.sandboxId)).toBeUndefined();
  await stopped;
  expect(parts.told).toEqual([`start ${id}`, `close ${id}`]);
  expect([...engine.containers.values()].every(({ running }) => !running)).toBe(true);
  await parts.settled();
  await expect.poll(() => engine.slots.size).toBe(0);
  nothingLeft(engine, parts);
  await expect(parts.sandboxes.start(id, body)).rejects.toMatchObject({ code: "conflict" });
});

test("a stop of an unknown execution succeeds, and a later start of it is refused", async () => {
  const { parts } = liveParts();
  const id = randomUUID();
  await parts.sandboxes.stop(id);
  await expect(parts.sandboxes.start(id, startRequest())).rejects.toMatchObject({ code: "conflict" });
});

test("two stops of one execution send one signal", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  await Promise.all([parts.sandboxes.stop(id), parts.sandboxes.stop(id)]);
  expect(engine.steps.filter((step) => step === "signal")).toHaveLength(1);
});

test("a container that the signal does not kill is killed through Docker", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  engine.fail((step) => {
    if (step === "signal") throw new Error("it hangs");
  });
  await parts.sandboxes.stop(id);
  expect(engine.steps).toContain("kill");
  expect(parts.sandboxes.get(id)).toBeUndefined();
});

test("a removal that fails is kept for later and does not hold up the stop", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  engine.fail((step) => {
    if (step === "remove") throw new Error("Docker does not answer");
  });
  await parts.sandboxes.stop(id);
  await parts.settled();
  expect(engine.containers.size).toBe(1);
  expect(engine.slots.size).toBe(1);
});

test("a sandbox whose process exits is recorded with its reason and removed", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  const body = startRequest();
  await parts.sandboxes.start(id, body);
  const [container] = engine.containers.values();
  engine.die(container?.id ?? "", { code: 3 });
  parts.sandboxes.died(container?.id ?? "", { reason: "exited", exitCode: 3 });
  await expect
    .poll(() => parts.stores.executions.exits())
    .toMatchObject([{ executionId: id, reason: "exited", exitCode: 3 }]);
  expect(parts.sandboxes.route(body.sandboxId)).toBeUndefined();
  await parts.settled();
  await expect.poll(() => engine.containers.size).toBe(0);
});

test("a sandbox whose first process is killed for memory is recorded with its limit", async () => {
  const { engine, parts } = liveParts();
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  const [container] = engine.containers.values();
  engine.die(container?.id ?? "", { code: 137 });
  parts.sandboxes.died(container?.id ?? "", { reason: "out_of_memory", exitCode: 137 });
  await expect
    .poll(() => parts.stores.executions.exits())
    .toMatchObject([{ executionId: id, reason: "out_of_memory", exitCode: 137, detail: "limit 512 MiB" }]);
  await parts.settled();
});

test("the node refuses sandboxes beyond its limit", async () => {
  const { parts } = liveParts({ maxSandboxes: 1 });
  await parts.sandboxes.start(randomUUID(), startRequest());
  await expect(parts.sandboxes.start(randomUUID(), startRequest())).rejects.toMatchObject({ code: "node_busy" });
});

test("a start that waits too long for a permit is refused as busy", async () => {
  const { engine, parts } = liveParts({ coldAtOnce: 1, queueMs: 30 });
  const gate = gateway();
  engine.fail((step) => (step === "create" ? gate.promise : undefined));
  const first = parts.sandboxes.start(randomUUID(), startRequest());
  await expect(parts.sandboxes.start(randomUUID(), startRequest())).rejects.toMatchObject({ code: "node_busy" });
  gate.resolve();
  await first;
});
