/** The facts that the log keeps of a failed request, seen through the server that every program with an API uses. */

import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../../../shared/http/errors.ts";
import { createServer } from "../../../../../shared/http/server.ts";
import { createLog, type LogLevel } from "../../../../../shared/program/log.ts";

const REASON = 'a file that a process has open is not as it was: "/srv/app.log"';
const ENGINE = `failed to create shim task: svc-runc: restore failed: File srv/app.log has bad size ${"x".repeat(9_000)}`;

function refusedRestore(): AppError {
  const cause = new Error(ENGINE, { cause: new Error(ENGINE) });
  const details = { log: "(00.01) cg: line of CRIU\n".repeat(200) };
  return new AppError("sandbox_create_failed", `the sandbox's memory could not be restored: ${REASON}`, {
    cause,
    details,
  });
}

/** Resolves to the log lines of a server whose only route fails with this error. */
async function logged(failure: Error, level: LogLevel, path = "/executions/1"): Promise<string[]> {
  const lines: string[] = [];
  const log = createLog({ component: "agent", level, destination: { write: (line) => void lines.push(line) } });
  const server = createServer(log);
  onTestFinished(() => server.close());
  server.put("/executions/:id", () => Promise.reject(failure));
  await server.inject({ method: "PUT", url: path });
  return lines;
}

test("a refused restore is one line of at most a kilobyte, with the file that it names, and its code", async () => {
  const lines = await logged(refusedRestore(), "info");
  expect(lines).toHaveLength(1);
  expect(Buffer.byteLength(lines[0] ?? "")).toBeLessThanOrEqual(1_024);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    level: 50,
    code: "sandbox_create_failed",
    reason: expect.stringContaining("'/srv/app.log'") as unknown,
    because: expect.stringContaining("has bad size") as unknown,
    method: "PUT",
    path: "/executions/1",
  });
});

test("the log line of a failure is at most a kilobyte, however long its parts are", async () => {
  const wide = '\u001b\u{1f600}\\"'.repeat(5_000);
  const failure = new AppError("unavailable", wide, { cause: wide, details: { wide } });
  const lines = await logged(failure, "info", `/executions/${"é".repeat(400)}`);
  expect(lines).toHaveLength(1);
  expect(Buffer.byteLength(lines[0] ?? "")).toBeLessThanOrEqual(1_024);
});

test("a failure's details are logged at debug, and the stack of an unexpected fault at every level", async () => {
  const [, details = "", ...more] = await logged(refusedRestore(), "debug");
  expect(more).toEqual([]);
  expect(JSON.parse(details)).toMatchObject({
    level: 20,
    details: { log: expect.stringContaining("CRIU") as unknown },
  });
  const [fault = ""] = await logged(new TypeError("x is not a function"), "info");
  expect(JSON.parse(fault)).toMatchObject({
    level: 50,
    cause: { message: "x is not a function", stack: expect.stringContaining("failure-facts.test.ts") as unknown },
  });
});
