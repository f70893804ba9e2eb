import { expect, test } from "vitest";
import { openDatabase } from "../../../../agent/store/database/database.ts";
import { networkLogStore } from "../../../../agent/store/network-log.ts";
import type { NetworkLogEntry } from "../../../../shared/agent-api/routes.ts";

const entry = (at: number, more: Partial<NetworkLogEntry> = {}): NetworkLogEntry => ({
  at,
  protocol: "tcp",
  address: "203.0.113.1",
  port: 80,
  verdict: "allow",
  rule: "default",
  count: 1,
  sentBytes: 0,
  receivedBytes: 0,
  ...more,
});
const times = (entries: readonly NetworkLogEntry[]) => entries.map(({ at }) => at);

test("entries of the network log are read oldest first, from a cursor or from the newest", () => {
  const log = networkLogStore(openDatabase(":memory:"));
  log.add("a", [entry(10, { name: "example.com" }), entry(30)], 0);
  log.add("a", [entry(20, { verdict: "deny" })], 3);
  log.add("b", [entry(15)], 0);
  expect(log.read("a", { limit: 10 })).toEqual({
    entries: [entry(10, { name: "example.com" }), entry(20, { verdict: "deny" }), entry(30)],
    suppressed: 3,
  });
  expect(times(log.read("a", { limit: 2 }).entries)).toEqual([20, 30]);
  expect(times(log.read("a", { cursor: 20, limit: 1 }).entries)).toEqual([20]);
  expect(log.read("nobody", { limit: 5 })).toEqual({ entries: [], suppressed: 0 });
});

test("decisions and bytes are added up since the start, also of entries that are no longer kept", () => {
  const log = networkLogStore(openDatabase(":memory:"), { perSandbox: 1, all: 1 });
  log.add("a", [entry(10, { count: 3, sentBytes: 5 }), entry(20, { verdict: "deny" })], 0);
  log.add("b", [entry(30, { protocol: "udp", receivedBytes: 7 })], 4);
  log.prune(40);
  expect(log.totals()).toEqual({
    decisions: new Map([
      ["tcp allow", 3],
      ["tcp deny", 1],
      ["udp allow", 1],
      ["any unlogged", 4],
    ]),
    sentBytes: 5,
    receivedBytes: 7,
  });
});

test("a question keeps the type of its records apart from the rule", () => {
  const log = networkLogStore(openDatabase(":memory:"));
  const asked = entry(10, { protocol: "dns", name: "a.test", recordType: "AAAA", rule: "failed NXDOMAIN" });
  log.add("a", [asked, entry(20, { rule: "failed ECONNREFUSED" })], 0);
  expect(log.read("a", { limit: 10 }).entries).toEqual([asked, entry(20, { rule: "failed ECONNREFUSED" })]);
});

test("pages leave nothing out where many were written down in the same millisecond", () => {
  const log = networkLogStore(openDatabase(":memory:"));
  const ports = Array.from({ length: 25 }, (_, port) => port);
  log.add(
    "a",
    ports.map((port) => entry(port < 2 ? 1 : port < 22 ? 2 : 3, { port })),
    0,
  );
  const seen: number[] = [];
  for (let cursor: number | undefined = 0; cursor !== undefined; ) {
    const { entries } = log.read("a", { cursor, limit: 4 });
    seen.push(...entries.map(({ port }) => port));
    const last: number | undefined = entries.at(-1)?.at;
    cursor = last === undefined ? undefined : last + 1;
  }
  expect(seen).toEqual(ports);
});

test("each sandbox keeps its newest entries, and pruning bounds the entries of all sandboxes together", () => {
  const log = networkLogStore(openDatabase(":memory:"), { perSandbox: 3, all: 4 });
  log.add(
    "a",
    [1, 2, 3, 4, 5].map((at) => entry(at)),
    0,
  );
  expect(times(log.read("a", { limit: 10 }).entries)).toEqual([3, 4, 5]);
  log.add(
    "b",
    [6, 7, 8].map((at) => entry(at)),
    0,
  );
  log.prune(0);
  expect(times([...log.read("a", { limit: 10 }).entries, ...log.read("b", { limit: 10 }).entries])).toEqual([
    5, 6, 7, 8,
  ]);
  log.prune(8);
  expect(times(log.read("b", { limit: 10 }).entries)).toEqual([8]);
});
