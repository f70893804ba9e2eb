import { expect, test } from "vitest";
import { Context } from "../../../../interpreter/contexts/context.ts";
import { HeldKernel } from "../../../../interpreter/contexts/held-kernel.ts";
import type { Kernel, KernelEvent } from "../../../../interpreter/kernels/kernel.ts";

test("an event that cannot be passed on is named, and those behind it come", async () => {
  const sandbox = { variables: async () => undefined, life: () => "" };
  const kernel: Kernel = {
    run: async (_code, emit) => {
      for (const text of ["large", "small"]) await emit({ type: "output", stream: "stdout", text });
    },
    change: async () => undefined,
    interrupt: () => undefined,
    graceMs: 0,
    stop: async () => undefined,
    ended: new Promise(() => undefined),
    environment: {},
  };
  const launch = { cwd: "/", environment: {}, runtime: "/" };
  const held = new HeldKernel({ start: async () => kernel, launch, sandbox });
  const context = new Context({ language: "python", cwd: "/", kernel: held, sandbox });
  const taken: KernelEvent[] = [];
  const left = new AbortController().signal;
  await context.execute({ code: "", variables: {}, accessToken: undefined, left }, async (event) => {
    if (event.type === "output" && event.text === "large") throw new RangeError("Invalid string length");
    taken.push(event);
  });
  expect(taken).toMatchObject([
    { type: "error", name: "OutputError", value: "output that is too large was left out: Invalid string length" },
    { type: "output", text: "small" },
  ]);
});
