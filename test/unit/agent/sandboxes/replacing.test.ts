/** An execution that stands still while another one is to take its place. */

import { setImmediate as later } from "node:timers/promises";
import { expect, test } from "vitest";
import { createReplacing } from "../../../../agent/sandboxes/replacing.ts";

test("a sandbox whose rewind fails while it is being frozen goes on only when that has ended", async () => {
  const steps: string[] = [];
  const cgroup = {
    frozen: () => false,
    freeze: async () => {
      await later();
      steps.push("frozen");
    },
    thaw: () => steps.push("thawed"),
  };
  const sandbox = { executionId: "e1", sandboxId: "i1", container: { id: "c1", slot: {}, cgroup }, egress: {} };
  const gate = { hold: () => Promise.reject(new Error("the firewall refuses")), open: () => Promise.resolve() };
  const replace = createReplacing({
    start: async ({ former }: { former: { standStill(): Promise<void>; goOn(): Promise<void> } }) => {
      try {
        await former.standStill();
      } catch (error) {
        await former.goOn();
        throw error;
      }
    },
    running: () => sandbox,
    leave: (_id: string, work: (leaving: object) => unknown) => work(sandbox),
    gate,
    beforeEnd: () => Promise.resolve(),
  } as never);
  const replaced = replace("e1", { body: { sandboxId: "i1" } } as never, new AbortController().signal);
  await expect(replaced).rejects.toThrow("the firewall refuses");
  await later();
  expect(steps).toEqual(["frozen", "thawed"]);
});
