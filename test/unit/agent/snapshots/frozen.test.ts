/** Frozen containers of paused sandboxes, and which of them can be dropped. */

import { expect, onTestFinished, test } from "vitest";
import type { LiveContainer } from "../../../../agent/containers/live-container.ts";
import { createFrozenContainers } from "../../../../agent/snapshots/frozen/frozen.ts";
import { createLog } from "../../../../shared/program/log.ts";

test("a frozen container is dropped on request unless it was resumed or holds state that is not stored", async () => {
  const evicted: string[] = [];
  let time = 0;
  const frozen = createFrozenContainers({
    evict: ({ id }) => Promise.resolve(void evicted.push(id)),
    keepMs: 1_000,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => time++,
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  const container = (id: string) => ({ id }) as LiveContainer;
  frozen.add("s1", container("stored"));
  frozen.add("s2", container("newest state"), true);
  frozen.add("s3", container("resumed"));
  expect(frozen.kept()).toEqual([
    { id: "s1", ran: false },
    { id: "s2", ran: true },
    { id: "s3", ran: false },
  ]);
  frozen.take("s3");
  for (const id of ["s1", "s2", "s3"]) await frozen.dropStored(id);
  expect(evicted).toEqual(["stored"]);
  expect(frozen.ids()).toEqual(["newest state"]);
});
