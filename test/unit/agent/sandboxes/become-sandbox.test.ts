/** In which order a container becomes a sandbox, where an order is a promise. */

import { expect, test } from "vitest";
import type { LiveContainer } from "../../../../agent/containers/live-container.ts";
import { becomeSandbox } from "../../../../agent/sandboxes/become-sandbox.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { noTiming } from "../../../../shared/program/tracing/timing.ts";

const log = createLog({ component: "test", level: "silent" });

test("the network of restored memory opens only when the image has passed its check, and never when it fails", async () => {
  for (const damage of [undefined, new Error("damaged")]) {
    const steps: string[] = [];
    const step = (name: string) => () => void steps.push(name);
    let end = () => {};
    const checked = new Promise<void>((resolve, reject) => {
      end = () => (damage === undefined ? resolve() : reject(damage));
    });
    const container = { id: "c", slot: { address: "10.0.0.2" }, controlToken: "t" } as LiveContainer;
    const became = becomeSandbox(
      { executionId: "e", body: { sandboxId: "s", egress: { rules: [] }, build: {} } as never, timing: noTiming },
      {
        containerId: "c",
        warm: false,
        restored: "memory",
        watches: false,
        run: () => container,
        verified: () => checked,
      },
      {
        stores: { executions: { add: step("row"), markRunning: step("running"), remove: step("row gone") } },
        docker: {
          envd: {
            // The check of a large image ends long after envd has its identity.
            async init() {
              steps.push("init");
              setImmediate(end);
            },
          },
        },
        egress: { caFor: async () => "", networkVariables: async () => ({}) },
        gate: { open: async () => step("network")() },
        now: Date.now,
        log,
      } as never,
      { teardown: new Teardown(log), signal: new AbortController().signal },
    );
    if (damage === undefined) await became;
    else await expect(became).rejects.toBe(damage);
    expect(steps).toEqual(damage === undefined ? ["row", "init", "network", "running"] : ["row", "init"]);
  }
});
