import { expect, test } from "vitest";
import { SharedLock } from "../../../../envd/filesystem/shared-lock.ts";

test("shared holders run at the same time; an exclusive one waits for those before it and delays those after it", async () => {
  const lock = new SharedLock();
  const order: string[] = [];
  const gates = new Map<string, () => void>();
  const work = (name: string) => async () => {
    order.push(`${name} in`);
    await new Promise<void>((resolve) => gates.set(name, resolve));
    order.push(`${name} out`);
  };
  const open = async (name: string) => {
    await expect.poll(() => gates.has(name)).toBe(true);
    gates.get(name)?.();
  };
  const all = [lock.share(work("a")), lock.share(work("b")), lock.alone(work("C")), lock.share(work("d"))];
  await open("b");
  await open("a");
  await open("C");
  await open("d");
  await Promise.all(all);
  expect(order).toEqual(["a in", "b in", "b out", "a out", "C in", "C out", "d in", "d out"]);
});

test("a failure reaches its caller and does not hold up others", async () => {
  const lock = new SharedLock();
  await expect(lock.alone(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(lock.share(() => Promise.reject(new Error("neither")))).rejects.toThrow("neither");
  expect(await lock.alone(() => Promise.resolve(1))).toBe(1);
});
