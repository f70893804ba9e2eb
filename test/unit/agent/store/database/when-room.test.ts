/** Writes to the agent's database while its disk is full. */

import { expect, test, vi } from "vitest";
import { whenRoom } from "../../../../../agent/store/database/when-room.ts";

const full = () => Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });

test("a write is repeated until there is room, and room is asked for once", async () => {
  const left = [full(), full()];
  const onFull = vi.fn();
  const write = vi.fn(() => {
    const error = left.pop();
    if (error !== undefined) throw error;
  });
  await whenRoom(write, { giveUp: () => false, onFull });
  expect(write).toHaveBeenCalledTimes(3);
  expect(onFull).toHaveBeenCalledTimes(1);
});

test("a write that fails for another reason, or for too long, fails", async () => {
  const broken = () => {
    throw new Error("broken");
  };
  await expect(whenRoom(broken, { giveUp: () => false })).rejects.toThrow("broken");
  const fails = () => {
    throw full();
  };
  await expect(whenRoom(fails, { giveUp: () => true })).rejects.toThrow("full");
});
