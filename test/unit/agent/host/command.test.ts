/** A program of the host: its limits of time, and that none is waited for without an end. */

import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { looking, type RunCommand, runCommand } from "../../../../agent/host/command.ts";

afterEach(() => void vi.useRealTimers());

/** Runs a program that has no end, while the time passes as the test says. */
async function hanging(run: RunCommand, passMs: number): Promise<"runs" | Error> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const ended = run("sleep", ["60"], { signal: end.signal }).then(
    () => new Error("it ended by itself"),
    (error: Error) => error,
  );
  vi.advanceTimersByTime(passMs);
  vi.useRealTimers();
  return Promise.race([ended, new Promise<"runs">((resolve) => setTimeout(() => resolve("runs"), 200))]);
}

test("a change outlasts a machine that stands still for most of a minute, and a look half a minute", async () => {
  expect(await hanging(runCommand, 59_000)).toBe("runs");
  expect(await hanging(looking(runCommand), 29_000)).toBe("runs");
});

test("a change is ended after a minute and a look after half a minute, and the error names the limit", async () => {
  expect(String(await hanging(runCommand, 60_000))).toContain("sleep 60 did not end within its limit of 60 s");
  expect(String(await hanging(looking(runCommand), 30_000))).toContain("sleep 60 did not end within its limit of 30 s");
});

test("a program whose child holds its output is waited for ten seconds after the limit, and no longer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const run = runCommand("sh", ["-c", "sleep 5 & wait"], { signal: end.signal });
  const failed = run.catch((error: Error) => error.message);
  vi.advanceTimersByTime(70_000);
  expect(await failed).toBe("sh -c sleep 5 & wait did not end within its limit of 60 s, nor when it was killed");
});

test("a program that fails by itself has its exit code and words in the error, and its limit is over", async () => {
  await expect(runCommand("sh", ["-c", "echo why >&2; exit 3"])).rejects.toThrow("ended with 3: why");
  await expect(runCommand("/no/such/program", [])).rejects.toThrow("cannot run /no/such/program");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  expect(await runCommand("cat", [], { input: "text" })).toBe("text");
  expect(vi.getTimerCount()).toBe(0);
});
