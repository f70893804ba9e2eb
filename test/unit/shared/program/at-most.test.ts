import { LRUCache } from "lru-cache";
import { expect, test } from "vitest";
import { atMost } from "../../../../shared/program/at-most.ts";

test("a cache of at most three entries forgets the one that was used least recently", () => {
  const cache = new LRUCache<string, number>(atMost(3));
  for (const [value, name] of ["a", "b", "c"].entries()) cache.set(name, value);
  cache.get("a");
  cache.set("d", 3);
  cache.set("c", 4);
  expect([...cache.keys()].toSorted()).toEqual(["a", "c", "d"]);
  expect(cache.get("c")).toBe(4);
});
