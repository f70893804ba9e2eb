import { describe, expect, test } from "vitest";
import { createSemaphore, shareOf } from "../../../../shared/program/semaphore.ts";

const never = () => new AbortController().signal;

/** Waits until every decision has taken effect. */
const settled = () => new Promise<void>((resolve) => void setImmediate(resolve));

describe("a semaphore", () => {
  test("gives permits in the order of the requests, and only as many at a time as it has", async () => {
    const semaphore = createSemaphore(2);
    const order: number[] = [];
    const taken = [1, 2, 3, 4].map(async (n) => {
      const release = await semaphore.take(never());
      order.push(n);
      return release;
    });
    await settled();
    expect([order, semaphore.busy, semaphore.waiting]).toEqual([[1, 2], 2, 2]);
    (await taken[0])?.();
    await settled();
    expect(order).toEqual([1, 2, 3]);
    for (const one of taken.slice(1, 3)) (await one)?.();
    (await taken[3])?.();
    expect([order, semaphore.busy, semaphore.waiting]).toEqual([[1, 2, 3, 4], 0, 0]);
  });

  test("gives a caller that has waited before its place in the line", async () => {
    const semaphore = createSemaphore(1);
    const first = await semaphore.take(never());
    const order: string[] = [];
    for (const [name, since] of [
      ["new", 300],
      ["again", 100],
      ["newer", 400],
      ["between", 200],
    ] as const) {
      void semaphore.take(never(), undefined, since).then((release) => {
        order.push(name);
        release();
      });
    }
    first();
    await settled();
    expect(order).toEqual(["again", "between", "new", "newer"]);
  });

  test("keeps some permits for other owners when one owner never releases its own", async () => {
    const semaphore = createSemaphore(4, shareOf(4));
    const hanging = Array.from({ length: 10 }, () => semaphore.take(never(), "hostile"));
    await settled();
    expect([semaphore.busy, semaphore.waiting]).toEqual([3, 7]);
    for (let n = 0; n < 5; n += 1) (await semaphore.take(never(), "other"))();
    (await semaphore.take(never()))();
    expect([semaphore.busy, semaphore.waiting]).toEqual([3, 7]);
    (await hanging[0])?.();
    await settled();
    expect([semaphore.busy, semaphore.waiting]).toEqual([3, 6]);
  });

  test("gives a released permit to the first waiter that may have one", async () => {
    const semaphore = createSemaphore(2, 1);
    const a = await semaphore.take(never(), "a");
    const b = await semaphore.take(never(), "b");
    const order: string[] = [];
    for (const owner of ["a", "c"]) void semaphore.take(never(), owner).then(() => order.push(owner));
    b();
    await settled();
    expect(order).toEqual(["c"]);
    a();
    await settled();
    expect(order).toEqual(["c", "a"]);
  });

  test("gives no permit to a waiter that gave up, and ignores a second release", async () => {
    const semaphore = createSemaphore(1, 1);
    const first = await semaphore.take(never(), "a");
    const leaving = new AbortController();
    const left = semaphore.take(leaving.signal, "a");
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    first();
    first();
    expect([semaphore.busy, semaphore.waiting]).toEqual([0, 0]);
    (await semaphore.take(never(), "a"))();
  });

  test.each([
    [1, 1],
    [2, 1],
    [4, 3],
    [8, 6],
  ])("of %i permits one owner has at most %i", (atOnce, share) => expect(shareOf(atOnce)).toBe(share));
});
