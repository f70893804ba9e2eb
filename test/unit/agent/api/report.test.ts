import { afterEach, expect, test } from "vitest";
import { type Contact, createContact, createReport, type Report } from "../../../../agent/api/report.ts";
import { readAgentConfig, readLabels } from "../../../../agent/config.ts";
import type { ContainerEvent } from "../../../../agent/containers/containers.ts";
import { createEngineWatch } from "../../../../agent/containers/engine-watch.ts";
import type { SentReport } from "../../../../agent/lease/lease.ts";
import { createExpiry, type Expiry } from "../../../../agent/sandboxes/expiry.ts";
import type { ExitReport, Heartbeat, HeartbeatReply } from "../../../../shared/agent-api/routes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function setup(): {
  report: Report;
  contact: Contact;
  pending: ExitReport[];
  sent: ExitReport[][];
  state: { away: boolean; at: number };
  applied: HeartbeatReply[];
  told: SentReport[];
} {
  const pending: ExitReport[] = [];
  const sent: ExitReport[][] = [];
  const applied: HeartbeatReply[] = [];
  const state = { away: false, at: 1_000 };
  const told: SentReport[] = [];
  const refuse = () => {
    if (state.away) throw new AppError("node_unreachable", "away");
  };
  const contact = createContact(Date.now);
  const report = createReport({
    nodeId: "n1",
    everyMs: 10,
    contact,
    now: Date.now,
    sinceBoot: () => state.at,
    log,
    orchestratorUrl: "http://127.0.0.1:3000",
    orchestrator: {
      heartbeat: async ({ body }) => {
        refuse();
        // The answer takes its time.
        state.at += 500;
        if (body.exits.length > 0) sent.push(body.exits);
        return { pools: [], stop: ["e9"], endAt: {}, deleteSnapshots: [] };
      },
      reportExits: async ({ body }) => {
        refuse();
        sent.push(body.exits);
      },
    },
    describe: () => ({ executions: [{ executionId: "e1" }] }) as unknown as Omit<Heartbeat, "exits">,
    exits: () => [...pending],
    acknowledge(ids) {
      for (const id of ids) {
        const at = pending.findIndex(({ executionId }) => executionId === id);
        if (at >= 0) pending.splice(at, 1);
      }
    },
    refused: () => false,
    apply(reply, sent) {
      told.push(sent);
      return applied.push(reply) > 0;
    },
  });
  stops.push(() => report.stop());
  // Both calls wait for the start: the first report carries what they announce.
  report.soon();
  report.exited();
  report.start();
  return { report, contact, pending, sent, state, applied, told };
}

const exit = (executionId: string): ExitReport => ({ executionId, sandboxId: "s", reason: "exited", at: 1 });

test("the orchestrator's answer to a report is carried out", async () => {
  const { applied, contact } = setup();
  await expect.poll(() => applied[0]).toEqual({ pools: [], stop: ["e9"], endAt: {}, deleteSnapshots: [] });
  expect(contact.reached).toBe(true);
});

test("an answer is applied with the executions that its report named, and the time at which that was sent", async () => {
  const { told } = setup();
  await expect.poll(() => told.length).toBeGreaterThan(1);
  expect(told.slice(0, 2)).toEqual([
    { at: 1_000, executions: ["e1"] },
    { at: 1_500, executions: ["e1"] },
  ]);
});

test("an exit is reported at once and, while the orchestrator is away, kept until it is acknowledged", async () => {
  const { report, contact, pending, sent, state } = setup();
  await expect.poll(() => contact.reached).toBe(true);
  state.away = true;
  pending.push(exit("e1"));
  report.exited();
  await expect.poll(() => contact.reached).toBe(false);
  expect(pending).toHaveLength(1);
  state.away = false;
  await expect.poll(() => pending).toEqual([]);
  expect(sent.flat().map(({ executionId }) => executionId)).toEqual(["e1"]);
});

function expiry(more: { lastContact?: number } = {}) {
  const begun = performance.now();
  const running = [{ executionId: "e1", endAt: 10_020 }];
  const ended: string[] = [];
  const timer: Expiry = createExpiry({
    running: () => running,
    // Ten seconds of its clock ago.
    lastContact: () => ({ last: more.lastContact ?? 0, at: (more.lastContact ?? 0) - 10_000 }),
    graceMs: 30,
    end: async (id) => {
      ended.push(id);
      running.splice(0);
    },
    elapsed: () => performance.now() - begun,
    log,
  });
  stops.push(() => timer.stop());
  timer.start();
  return { timer, running, ended };
}

test("while the orchestrator is silent, the agent ends a sandbox after its end and the grace period", async () => {
  const { ended } = expiry();
  expect(ended).toEqual([]);
  await expect.poll(() => ended).toEqual(["e1"]);
});

test("while the orchestrator answers, the agent ends no sandbox by itself", async () => {
  const { running, ended } = expiry({ lastContact: 10_000_000 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ended).toEqual([]);
  expect(running).toHaveLength(1);
});

test("a later end moves the timer", async () => {
  const { timer, running, ended } = expiry();
  running.splice(0, 1, { executionId: "e1", endAt: 10_000_000 });
  timer.changed();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(ended).toEqual([]);
});

function engine() {
  const owned = ["c1", "c2"];
  const running = new Set(owned);
  const gone: { id: string; reason: string; exitCode?: number | undefined }[] = [];
  const state = { emit: (_event: ContainerEvent) => undefined as void, break: () => undefined as void, back: 0 };
  const clock = { later: 0 };
  const inspected = new Map<string, { oomKilled: boolean; exitCode: number }>();
  const watch = createEngineWatch({
    containers: {
      list: async () => [...running].map((id) => ({ id, name: id, running: true })),
      inspect: async (id) => {
        const seen = inspected.get(id);
        return seen === undefined
          ? undefined
          : { running: false, pid: 0, upperDirectory: undefined, cpus: "", ...seen };
      },
      watch: (_since, onEvent, signal) =>
        new Promise((resolve, reject) => {
          state.emit = onEvent;
          state.break = () => reject(new Error("the stream broke"));
          signal.addEventListener("abort", () => resolve(), { once: true });
        }),
    },
    owned: () => owned,
    isSandbox: () => true,
    onGone: (id, exit) => {
      owned.splice(owned.indexOf(id), 1);
      gone.push({ id, ...exit });
    },
    onBack: () => {
      state.back += 1;
    },
    now: () => Date.now() + clock.later,
    log,
  });
  stops.push(() => watch.stop());
  watch.start();
  return { watch, running, gone, state, inspected, clock };
}

test("an end is reported with its exit code, and as out of memory when it was", async () => {
  const { gone, state, inspected, watch } = engine();
  await expect.poll(() => watch.connected).toBe(true);
  inspected.set("c1", { oomKilled: false, exitCode: 3 });
  inspected.set("c2", { oomKilled: false, exitCode: 137 });
  await expect.poll(() => state.emit).toBeDefined();
  state.emit({ kind: "died", id: "c1", exitCode: 3 });
  state.emit({ kind: "oom", id: "c2", exitCode: undefined });
  state.emit({ kind: "died", id: "c2", exitCode: 137 });
  state.emit({ kind: "died", id: "somebody-else", exitCode: 1 });
  await expect
    .poll(() => gone)
    .toEqual([
      { id: "c1", reason: "exited", exitCode: 3 },
      { id: "c2", reason: "out_of_memory", exitCode: 137 },
    ]);
});

test("an earlier kill for memory, of another process, is not why a sandbox ends later", async () => {
  const { gone, state, inspected, watch, clock } = engine();
  await expect.poll(() => watch.connected).toBe(true);
  inspected.set("c1", { oomKilled: true, exitCode: 0 });
  inspected.set("c2", { oomKilled: true, exitCode: 137 });
  state.emit({ kind: "oom", id: "c1", exitCode: undefined });
  state.emit({ kind: "oom", id: "c2", exitCode: undefined });
  state.emit({ kind: "died", id: "c1", exitCode: 0 });
  clock.later = 11_000;
  state.emit({ kind: "died", id: "c2", exitCode: 137 });
  await expect
    .poll(() => gone)
    .toEqual([
      { id: "c1", reason: "exited", exitCode: 0 },
      { id: "c2", reason: "exited", exitCode: 137 },
    ]);
});

test("containers that died during a gap in the events are found after it", async () => {
  const { gone, state, running, watch } = engine();
  await expect.poll(() => watch.connected).toBe(true);
  running.delete("c2");
  state.break();
  await expect.poll(() => gone).toEqual([{ id: "c2", reason: "removed" }]);
  expect(state.back).toBe(1);
});

test("labels are pairs, whose values may have an equals sign", () => {
  expect(readLabels("region=eu, disk = nvme,a=b=c,empty=,")).toEqual({
    region: "eu",
    disk: "nvme",
    a: "b=c",
    empty: "",
  });
  expect(readLabels("")).toEqual({});
});

test.each([
  ["x", "'x' is not key=value"],
  ["disk=nvme,=y", "'=y' is not key=value"],
  ["two words=y", "'two words=y' is not key=value"],
  ["a=1,a=2", "'a' is given twice"],
])("an agent with the labels %j does not start, and says which pair it cannot read", (text, words) => {
  const token = "a-token-of-this-test";
  const environment = { SVC_NODE_ID: "n1", SVC_NODE_TOKEN: token, SVC_ORCHESTRATOR_TOKEN: token, SVC_LABELS: text };
  expect(() => readAgentConfig(environment)).toThrow(`SVC_LABELS: ${words}`);
});
