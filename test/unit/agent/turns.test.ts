import { describe, expect, test } from "vitest";
import { createSemaphore, shareOf } from "../../../shared/program/semaphore.ts";

const never = () => new AbortController().signal;

/** Waits until every decision has taken effect. */
const settled = () => new Promise<void>((resolve) => void setImmediate(resolve));

describe("turns", () => {
  test("are given in order, so many at a time", async () => {
    const turns = createSemaphore(2);
    const order: number[] = [];
    const taken = [1, 2, 3, 4].map(async (n) => {
      const giveBack = await turns.take(never());
      order.push(n);
      return giveBack;
    });
    await settled();
    expect([order, turns.busy, turns.waiting]).toEqual([[1, 2], 2, 2]);
    (await taken[0])?.();
    await settled();
    expect(order).toEqual([1, 2, 3]);
    for (const one of taken.slice(1, 3)) (await one)?.();
    (await taken[3])?.();
    expect([order, turns.busy, turns.waiting]).toEqual([[1, 2, 3, 4], 0, 0]);
  });

  test("that one owner does not give back leave some to the others", async () => {
    const turns = createSemaphore(4, shareOf(4));
    const hanging = Array.from({ length: 10 }, () => turns.take(never(), "hostile"));
    await settled();
    expect([turns.busy, turns.waiting]).toEqual([3, 7]);
    for (let n = 0; n < 5; n += 1) (await turns.take(never(), "other"))();
    (await turns.take(never()))();
    expect([turns.busy, turns.waiting]).toEqual([3, 7]);
    (await hanging[0])?.();
    await settled();
    expect([turns.busy, turns.waiting]).toEqual([3, 6]);
  });

  test("that are released go to the first waiter that may have one", async () => {
    const turns = createSemaphore(2, 1);
    const a = await turns.take(never(), "a");
    const b = await turns.take(never(), "b");
    const order: string[] = [];
    for (const owner of ["a", "c"]) void turns.take(never(), owner).then(() => order.push(owner));
    b();
    await settled();
    expect(order).toEqual(["c"]);
    a();
    await settled();
    expect(order).toEqual(["c", "a"]);
  });

  test("of a waiter that gave up stay free, and a second release has no effect", async () => {
    const turns = createSemaphore(1, 1);
    const first = await turns.take(never(), "a");
    const leaving = new AbortController();
    const left = turns.take(leaving.signal, "a");
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    first();
    first();
    expect([turns.busy, turns.waiting]).toEqual([0, 0]);
    (await turns.take(never(), "a"))();
  });

  test.each([
    [1, 1],
    [2, 1],
    [4, 3],
    [8, 6],
  ])("of %i one owner has at most %i", (atOnce, share) => expect(shareOf(atOnce)).toBe(share));
});
