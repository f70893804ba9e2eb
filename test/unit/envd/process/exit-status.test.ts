import { expect, test } from "vitest";
import { describeExit } from "../../../../envd/process/exit-status.ts";

test("exit 0 has no error", () => {
  expect(describeExit(0)).toEqual({ exitCode: 0, exited: true, status: "exit status 0" });
});

test("the error of another exit code is its status", () => {
  expect(describeExit(3 << 8)).toEqual({ exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" });
  expect(describeExit(255 << 8).exitCode).toBe(255);
});

test.each([
  [9, "signal: killed"],
  [15, "signal: terminated"],
  [11 | 0x80, "signal: segmentation fault (core dumped)"],
  [2, "signal: interrupt"],
  [40, "signal: signal 40"],
])("wait status %i reads %s, with exit code -1", (status, text) => {
  expect(describeExit(status)).toEqual({ exitCode: -1, exited: false, status: text, error: text });
});
