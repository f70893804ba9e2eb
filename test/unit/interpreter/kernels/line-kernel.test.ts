import type { Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { KernelEnded, type KernelEvent } from "../../../../interpreter/kernels/kernel.ts";
import { KernelProcess } from "../../../../interpreter/kernels/process.ts";
import { LineKernel } from "../../../../interpreter/kernels/workers/line-kernel.ts";

/** A worker that answers each command with these lines. */
function kernelThatSays(lines: readonly string[]): LineKernel {
  const program = `console.log('["ready"]'); process.stdin.on("data", () => console.log(${JSON.stringify(lines.join("\n"))}));`;
  const worker = new KernelProcess([process.execPath, "-e", program], {
    cwd: "/",
    environment: {},
    stdio: ["pipe", "pipe", "pipe"],
    keepsErrors: true,
  });
  return new LineKernel({
    process: worker,
    environment: {},
    commands: worker.child.stdin as Writable,
    events: worker.child.stdout as Readable,
    prints: [],
    graceMs: 0,
    runLine: (code) => `${code}\n`,
    changeLine: () => "\n",
  });
}

test("a line that only looks like a result, as a program of a cell may write one, is left out", async () => {
  const kernel = kernelThatSays(['["result"]', '["result",true,null]', '["output","stdout","1"]', '["end"]']);
  await kernel.ready();
  const taken: KernelEvent[] = [];
  await kernel.run("", async (event) => void taken.push(event));
  expect(taken).toEqual([{ type: "output", stream: "stdout", text: "1" }]);
  await kernel.stop();
});

test("a kernel whose events cannot be read any more ends, and its run with it", async () => {
  const kernel = kernelThatSays(['["output","stdout","1"]', '["end"]']);
  await kernel.ready();
  const run = kernel.run("", async () => {
    throw new RangeError("Invalid string length");
  });
  await expect(run).rejects.toThrow(KernelEnded);
  expect((await kernel.ended).signal).toBe("SIGKILL");
});
