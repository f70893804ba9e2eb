import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { ExitReport } from "../../../../envd/process/exit-status.ts";
import { Process } from "../../../../envd/process/process.ts";
import { System, type WaitStatus } from "../../../../envd/system/system.ts";

const PID = 4242;

afterEach(() => void vi.useRealTimers());

/** A process that no signal ends: it ends when the test calls `end`. */
function stubborn() {
  const directory = mkdtempSync(join(tmpdir(), "kill-"));
  const stdout = join(directory, "stdout");
  execFileSync("sh", ["-c", `mkfifo ${stdout}`]);
  const system = new System("/nowhere");
  vi.spyOn(system, "signal").mockImplementation((_, signal) => Promise.resolve(signal === 9));
  let end: (status: WaitStatus) => void = () => undefined;
  const exited = new Promise<WaitStatus>((resolve) => (end = resolve));
  const spawned = { pid: PID, stdin: undefined, stdout, stderr: undefined, exited, release: () => undefined };
  const explain = (report: ExitReport) => ({ ...report, error: "explained" });
  const config = { cmd: "sleep", args: [], envs: {}, cwd: undefined };
  const options = {
    config,
    tag: undefined,
    terminal: false,
    stdin: false,
    deadlineMs: undefined,
    observe: () => undefined,
    explain,
  };
  const process = new Process(system, spawned, options);
  const over = async () => {
    end(9);
    await process.ended;
    rmSync(directory, { recursive: true });
  };
  return { process, end, over };
}

test("SIGKILL is answered after the process has ended, not before", async () => {
  const { process, end, over } = stubborn();
  const told: string[] = [];
  const killed = process.signal(9).then(() => told.push("answered"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  told.push("ended");
  end(9);
  await killed;
  expect(told).toEqual(["ended", "answered"]);
  await over();
});

test("the kernel's counter does not explain the end of a process that the client killed", async () => {
  const { process, end, over } = stubborn();
  const killed = process.signal(9);
  end(9);
  await killed;
  expect(await process.ended).toMatchObject({ is: "exit", report: { error: "signal: killed" } });
  await over();
});

test("the kernel's counter may explain the end of a process that nobody here killed", async () => {
  const { process, end, over } = stubborn();
  await process.signal(15);
  end(9);
  expect(await process.ended).toMatchObject({ is: "exit", report: { status: "signal: killed", error: "explained" } });
  await over();
});

test("a kill fails with an error when the kernel does not end the process", async () => {
  const { process, over } = stubborn();
  vi.useFakeTimers();
  const killed = expect(process.signal(9)).rejects.toMatchObject({
    code: "internal",
    message: "process with pid 4242 has not ended 5000 ms after SIGKILL",
  });
  await vi.advanceTimersByTimeAsync(6_000);
  await killed;
  vi.useRealTimers();
  await over();
});
