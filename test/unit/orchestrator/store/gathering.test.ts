/** Writes that many ask for at once are few statements, and each asker hears of its own. */

import { expect, test } from "vitest";
import { gatherWrites } from "../../../../orchestrator/store/nodes/gathering.ts";

interface Item {
  readonly key: string;
  readonly value: number;
}

/** A server that answers when the test says so. */
function slowServer(refuses: (item: Item) => boolean = () => false) {
  const writes: (readonly Item[])[] = [];
  const answers: (() => void)[] = [];
  const ask = gatherWrites<Item, number>({
    keyOf: ({ key }) => key,
    async write(items) {
      writes.push(items);
      await new Promise<void>((resolve) => answers.push(resolve));
      if (items.some(refuses)) throw new Error("the server refuses a value");
      return new Map(items.map(({ key, value }) => [key, value]));
    },
    most: 3,
  });
  /** Answers until nobody waits. */
  async function answerAll(): Promise<void> {
    while (answers.length > 0) {
      answers.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return { ask, writes, answerAll };
}

const values = (writes: readonly (readonly Item[])[]) => writes.map((items) => items.map(({ value }) => value));

test("what comes while a write is under way goes together in the next ones", async () => {
  const { ask, writes, answerAll } = slowServer();
  const asked = [1, 2, 3, 4, 5].map((value) => ask({ key: `k${value}`, value }));
  await answerAll();
  expect(await Promise.all(asked)).toEqual([1, 2, 3, 4, 5]);
  expect(values(writes)).toEqual([[1], [2, 3, 4], [5]]);
});

test("nobody has an answer before what they gave is written", async () => {
  const { ask, answerAll } = slowServer();
  const told: number[] = [];
  for (const value of [1, 2]) void ask({ key: `k${value}`, value }).then((answer) => told.push(answer));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([]);
  await answerAll();
  expect(told).toEqual([1, 2]);
});

test("of two with one key the later one is written, and both hear of it", async () => {
  const { ask, writes, answerAll } = slowServer();
  const asked = [ask({ key: "first", value: 0 }), ask({ key: "k", value: 1 }), ask({ key: "k", value: 2 })];
  await answerAll();
  expect(await Promise.all(asked)).toEqual([0, 2, 2]);
  expect(values(writes)).toEqual([[0], [2]]);
});

test("one that the server refuses fails alone", async () => {
  const { ask, answerAll } = slowServer(({ value }) => value === 3);
  const asked = [1, 2, 3, 4].map((value) => ask({ key: `k${value}`, value }));
  const settled = Promise.allSettled(asked);
  await answerAll();
  expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
});
