import * as fc from "fast-check";
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

  test("serves owners in turn: a burst of one owner delays another's single caller by one permit", async () => {
    const semaphore = createSemaphore(1);
    const first = await semaphore.take(never(), "burst");
    const order: string[] = [];
    const wait = (owner: string) =>
      semaphore.take(never(), owner).then((release) => {
        order.push(owner);
        return release;
      });
    const burst = Array.from({ length: 5 }, () => wait("burst"));
    first();
    await settled();
    const single = wait("single");
    expect([semaphore.waiting, semaphore.waitingOf("burst"), semaphore.waitingOf("other")]).toEqual([5, 4, 0]);
    (await burst[0])?.();
    (await burst[1])?.();
    (await single)();
    await settled();
    expect(order).toEqual(["burst", "burst", "single", "burst"]);
  });

  test("starves nobody, keeps its limits and forgets who has left, whatever its callers do", async () => {
    const owners = ["a", "b", "c", undefined] as const;
    const action = fc.oneof(
      fc.record({ do: fc.constant("take" as const), owner: fc.constantFrom(...owners), n: fc.nat() }),
      fc.record({ do: fc.constantFrom("release" as const, "leave" as const), owner: fc.constant("a"), n: fc.nat() }),
    );
    const given = { atOnce: fc.integer({ min: 1, max: 4 }), actions: fc.array(action, { maxLength: 60 }) };
    await fc.assert(
      fc.asyncProperty(fc.record(given), async ({ atOnce, actions }) => {
        const perOwner = shareOf(atOnce);
        const semaphore = createSemaphore(atOnce, perOwner);
        const held: { owner: string | undefined; release: () => void }[] = [];
        const waiting: { owner: string | undefined; stop: AbortController; overtaken: Map<string, number> }[] = [];
        const holds = (owner: string | undefined) => held.filter((one) => one.owner === owner).length;
        const mayHave = (owner: string | undefined) => owner === undefined || holds(owner) < perOwner;
        const count = (owner: string | undefined) => {
          // The first caller of an owner that may have a permit sees each other owner before it once.
          for (const other of new Set(waiting.map((one) => one.owner))) {
            const head = waiting.find((one) => one.owner === other);
            if (head === undefined || other === owner || !mayHave(other)) continue;
            const times = (head.overtaken.get(String(owner)) ?? 0) + 1;
            head.overtaken.set(String(owner), times);
            expect(times).toBeLessThanOrEqual(1);
          }
        };
        const take = async (owner: string | undefined) => {
          const me = { owner, stop: new AbortController(), overtaken: new Map<string, number>() };
          waiting.push(me);
          const release = await semaphore.take(me.stop.signal, owner).catch(() => undefined);
          waiting.splice(waiting.indexOf(me), 1);
          if (release === undefined) return;
          count(owner);
          held.push({ owner, release });
        };
        for (const { do: what, owner, n } of actions) {
          if (what === "take") void take(owner);
          else if (what === "release" && held.length > 0) held.splice(n % held.length, 1)[0]?.release();
          else if (what === "leave" && waiting.length > 0) waiting[n % waiting.length]?.stop.abort(new Error("left"));
          await settled();
          expect([semaphore.busy, semaphore.waiting]).toEqual([held.length, waiting.length]);
          for (const one of ["a", "b", "c"]) expect(holds(one)).toBeLessThanOrEqual(perOwner);
          expect(semaphore.busy).toBeLessThanOrEqual(atOnce);
          if (semaphore.busy < atOnce) expect(waiting.filter((one) => mayHave(one.owner))).toEqual([]);
        }
        while (held.length > 0) {
          held.shift()?.release();
          await settled();
        }
        expect([semaphore.busy, semaphore.waiting, waiting]).toEqual([0, 0, []]);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    [1, 1],
    [2, 1],
    [4, 3],
    [8, 6],
  ])("of %i permits one owner has at most %i", (atOnce, share) => expect(shareOf(atOnce)).toBe(share));
});
