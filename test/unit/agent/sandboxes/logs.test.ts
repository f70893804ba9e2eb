import { afterEach, expect, test } from "vitest";
import { planNetwork } from "../../../../agent/network/addresses.ts";
import { type SandboxLogs, startSandboxLogs } from "../../../../agent/sandboxes/logs.ts";
import type { Sandbox } from "../../../../agent/sandboxes/sandbox.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const running: SandboxLogs[] = [];
afterEach(async () => {
  for (const logs of running.splice(0)) await logs.stop();
});

const sandbox: Sandbox = {
  executionId: "e1",
  sandboxId: "s1",
  projectId: undefined,
  egress: OPEN,
  startedAt: NOW - 1_000,
  warm: false,
  restored: "nothing" as const,
  onTimeout: { does: "kill" as const, memory: true },
  endAt: NOW + 1_000,
  container: {
    id: "c1",
    pid: 1,
    slot: planNetwork("t", "10.99.0.0/24").slot(2),
    controlToken: "t",
    build,
    resources,
    runtime: "r",
    upperDirectory: undefined,
    createdAt: NOW,
    cgroup: {
      freeze: () => Promise.resolve(),
      processes: () => [],
      thaw: () => undefined,
      resize: () => undefined,
      frozen: () => false,
      alive: () => true,
      kill: () => Promise.resolve(),
      usage: () => ({ cpuUs: 0, memory: 0, cache: 0, shared: 0 }),
      memoryKills: () => 0,
    },
  },
};

const line = (seq: number, more: object = {}) => ({
  seq,
  timestamp: new Date(NOW - 500 + seq).toISOString(),
  level: "info",
  logger: "process",
  message: `line ${seq}`,
  fields: {},
  ...more,
});

function setup(answer: (after: number) => unknown) {
  const asked: number[] = [];
  const logs = startSandboxLogs({
    envd: {
      logs(_at, after) {
        asked.push(after);
        return Promise.resolve(answer(after));
      },
    },
    store: openStores(":memory:", testSeal).logs,
    running: () => [],
    now: () => NOW,
    log: createLog({ component: "test", level: "silent" }),
  });
  running.push(logs);
  return { logs, asked };
}

const all = { limit: 1_000, direction: "forward" } as const;

test("log lines of a sandbox are fetched on request, once each, and stay readable after its end", async () => {
  const { logs, asked } = setup((after) => ({ entries: [line(1), line(2), line(3)].filter(({ seq }) => seq > after) }));
  const first = await logs.read("e1", sandbox, all);
  expect(first.map(({ message }) => message)).toEqual(["line 1", "line 2", "line 3"]);
  expect(await logs.read("e1", sandbox, all)).toEqual(first);
  expect(asked).toEqual([0, 3]);
  expect(await logs.read("e1", undefined, all)).toEqual(first);
  expect(asked).toHaveLength(2);
});

test("a sandbox whose first process was killed for memory has that as its last line", async () => {
  const { logs } = setup(() => ({ entries: [line(1), line(2)] }));
  await logs.read("e1", sandbox, all);
  logs.outOfMemory(sandbox);
  expect((await logs.read("e1", undefined, all)).map(({ level, message }) => `${level} ${message}`)).toEqual([
    "info line 1",
    "info line 2",
    "error the sandbox ended, out of memory: limit 512 MiB",
  ]);
});

test("log entries can be read in both directions, from a cursor, by level and by a word", async () => {
  const entries = [line(1), line(2, { level: "error", message: "a Problem" }), line(3, { level: "warn" })];
  const { logs } = setup(() => ({ entries }));
  const read = async (query: object) =>
    (await logs.read("e1", sandbox, { ...all, ...query })).map(({ timestamp }) => Date.parse(timestamp) - NOW + 500);
  expect(await read({ direction: "backward", limit: 2 })).toEqual([3, 2]);
  expect(await read({ cursor: NOW - 500 + 2 })).toEqual([2, 3]);
  expect(await read({ direction: "backward", cursor: NOW - 500 + 2 })).toEqual([2, 1]);
  expect(await read({ level: "warn" })).toEqual([2, 3]);
  expect(await read({ search: "Problem" })).toEqual([2]);
  expect(await read({ search: "problem" })).toEqual([]);
  expect(await read({ limit: 0 })).toEqual([]);
});

test.each([
  ["no object", 7],
  ["no entries", {}],
  ["entries that are not a list", { entries: "x" }],
  ["too many entries", { entries: Array.from({ length: 2_000 }, (_, index) => line(index + 1)) }],
  [
    "entries of other shapes",
    { entries: [null, 1, {}, line(-1), line(1, { level: "loud" }), line(1, { message: 7 })] },
  ],
])("an answer of envd with %s gives no log entries", async (_what, answer) => {
  const { logs } = setup(() => answer);
  expect(await logs.read("e1", sandbox, all)).toEqual([]);
});

test("source and time that a line claims are not trusted, and its size is cut", async () => {
  const fields = {
    sandboxID: "someone-else",
    team_id: "x",
    kept: "yes",
    nested: { a: 1 },
    long: "x".repeat(5_000),
    ...Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`f${index}`, "v"])),
  };
  const { logs } = setup(() => ({
    entries: [line(1, { timestamp: "2031-01-01T00:00:00Z", message: "m".repeat(9_000), fields })],
  }));
  const [entry] = await logs.read("e1", sandbox, all);
  expect(entry?.timestamp).toBe(new Date(NOW).toISOString());
  expect(entry?.message).toHaveLength(4_096);
  expect(entry?.fields).toMatchObject({ kept: "yes", nested: '{"a":1}', logger: "process" });
  expect(entry?.fields).not.toHaveProperty("sandboxID");
  expect(entry?.fields).not.toHaveProperty("team_id");
  expect(entry?.fields["long"]).toHaveLength(1_024);
  expect(Object.keys(entry?.fields ?? {}).length).toBeLessThanOrEqual(33);
});

test("a sandbox that does not answer does not keep its old lines from being read", async () => {
  const answers = [{ entries: [line(1)] }];
  const { logs } = setup(() => {
    const answer = answers.shift();
    if (answer === undefined) throw new Error("gone");
    return answer;
  });
  await logs.read("e1", sandbox, all);
  expect(await logs.read("e1", sandbox, all)).toHaveLength(1);
});
