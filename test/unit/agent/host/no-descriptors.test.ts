/** Programs that are started while the agent has no descriptor left: Node then makes a child without its streams. */

import childProcess from "node:child_process";
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Begin } from "../../../../agent/egress/channel/messages.ts";
import { openChannel } from "../../../../agent/egress-supervisor/channel.ts";
import { watchTable } from "../../../../agent/network/nft/table-watch.ts";
import { findHole } from "../../../../agent/node-disk/holes.ts";
import { createLog } from "../../../../shared/program/log.ts";

/** Until the end of the test, no program can be started. Returns how many were tried. */
function withoutDescriptors(): () => number {
  const { spawn } = childProcess;
  let tried = 0;
  const failing = () => {
    tried += 1;
    const child = Object.assign(new EventEmitter(), { pid: undefined, kill: () => false });
    process.nextTick(() => {
      child.emit("error", Object.assign(new Error("spawn EMFILE"), { code: "EMFILE" }));
      child.emit("close", -1, null);
    });
    return child;
  };
  const replace = (by: unknown) => {
    Object.assign(childProcess, { spawn: by });
    syncBuiltinESMExports();
  };
  replace(failing);
  onTestFinished(() => replace(spawn));
  return () => tried;
}

test("a walk for holes that cannot be started fails, and does not end the agent", async () => {
  withoutDescriptors();
  await expect(findHole("/nowhere")).rejects.toThrow("cannot run find");
});

test("a watch of the table that cannot be started is started again, and does not end the agent", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const tried = withoutDescriptors();
  const changed = { table: () => undefined, host: () => undefined };
  const stop = watchTable({ network: "svc", program: () => Promise.resolve("/watch"), isOwn: () => false }, changed);
  await vi.advanceTimersByTimeAsync(2_500);
  stop();
  expect(tried()).toBe(3);
});

test("an egress process that cannot be started is told to be over, and does not end the agent", async () => {
  withoutDescriptors();
  const log = createLog({ component: "test", level: "silent" });
  const begin = {} as Begin;
  const channel = openChannel({ command: ["/egress"], environment: {}, begin, onMessage: () => undefined, log });
  await expect(channel.ready).rejects.toThrow("cannot be started: spawn EMFILE");
  await channel.ended;
});
