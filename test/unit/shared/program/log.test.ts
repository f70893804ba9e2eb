import { expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";

test("an error that a time limit caused is written down, with its cause", () => {
  const lines: string[] = [];
  const log = createLog({ component: "test", destination: { write: (line) => lines.push(line) } });
  const cause = new DOMException("the operation took too long", "TimeoutError");
  log.error({ err: new AppError("internal", "the restore was cut", { cause }), cause }, "a request failed");
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    err: { message: "the restore was cut: the operation took too long" },
    cause: { message: "the operation took too long" },
  });
});

test("a secret in the cause of an error is not written down", () => {
  const lines: string[] = [];
  const log = createLog({ component: "test", destination: { write: (line) => lines.push(line) } });
  const cause = Object.assign(new Error("refused"), { token: "not-for-a-log" });
  log.error({ err: new Error("failed", { cause }), cause }, "a request failed");
  expect(lines.join("")).not.toContain("not-for-a-log");
});
