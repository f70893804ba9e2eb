import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { logAcceptFailures } from "../../../../shared/http/connections/accept-failures.ts";
import { createLog } from "../../../../shared/program/log.ts";

test("a thousand connections in a row that a server cannot accept are one line, and the next one counts them", () => {
  const lines: { failures: number; msg: string; err: { message: string } }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) };
  const server = new EventEmitter();
  const clock = { now: 5 };
  logAcceptFailures(server, createLog({ component: "test", destination }), "could not accept", () => clock.now);
  const fail = (times: number) => {
    for (let one = 0; one < times; one++) server.emit("error", new Error("accept EMFILE"));
  };
  fail(1000);
  expect(lines.map(({ failures, msg, err }) => [failures, msg, err.message])).toEqual([
    [1, "could not accept", "accept EMFILE"],
  ]);
  clock.now += 9_999;
  fail(1);
  expect(lines).toHaveLength(1);
  clock.now += 1;
  fail(1);
  expect(lines.map(({ failures }) => failures)).toEqual([1, 1001]);
});
