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

test("a run whose context is removed while it asks for variables starts no kernel that nothing would end", async () => {
  let answer: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => (answer = resolve));
  const sandbox = { variables: async () => asked.then(() => undefined), life: () => "" };
  let started = 0;
  const start = async (): Promise<Kernel> => {
    started += 1;
    return {
      run: async () => undefined,
      change: async () => undefined,
      interrupt: () => undefined,
      graceMs: 0,
      stop: async () => undefined,
      ended: new Promise(() => undefined),
      environment: {},
    };
  };
  const launch = { cwd: "/", environment: {}, runtime: "/" };
  const held = new HeldKernel({ start, launch, sandbox });
  const context = new Context({ language: "python", cwd: "/", kernel: held, sandbox });
  await context.start();
  const taken: KernelEvent[] = [];
  const left = new AbortController().signal;
  const run = context.execute({ code: "", variables: {}, accessToken: undefined, left }, async (event) => {
    taken.push(event);
  });
  // Until the run is under way.
  await new Promise((resolve) => setImmediate(resolve));
  await context.remove();
  answer();
  await run;
  expect(taken).toMatchObject([{ type: "error", name: "ContextRemoved" }]);
  expect(started).toBe(1);
});
