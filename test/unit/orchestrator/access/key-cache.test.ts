import { expect, test } from "vitest";
import { createIdentity } from "../../../../orchestrator/access/key-cache.ts";
import { createKeyUses } from "../../../../orchestrator/access/key-uses.ts";
import type { KeyOwner } from "../../../../orchestrator/store/keys/keys.ts";
import { hashApiKey } from "../../../../shared/ids.ts";

function setUp(expiresAt?: number) {
  const seen = { lookups: 0, written: [] as [string, number][][] };
  const clock = { now: 1_000_000 };
  const uses = createKeyUses({
    keys: {
      touch: (noted) => {
        seen.written.push([...noted]);
        return Promise.resolve();
      },
    },
    now: () => clock.now,
  });
  const identity = createIdentity({
    keys: {
      findOwner: (hash) => {
        seen.lookups++;
        return Promise.resolve({ keyId: hash, expiresAt, project: { id: "p" } } as unknown as KeyOwner);
      },
    },
    uses,
    now: () => clock.now,
  });
  return { identity, uses, seen, clock };
}

test("a key in use stays in the cache while more other keys come than the cache holds", async () => {
  const { identity, seen } = setUp();
  const others = 11_000;
  for (let other = 0; other < others; other++) {
    if (other % 1_000 === 0) await identity.owner("in use");
    await identity.owner(`other ${other}`);
  }
  await identity.owner("in use");
  expect(seen.lookups).toBe(others + 1);
});

test("a changed or deleted key is looked up again", async () => {
  const { identity, seen } = setUp();
  await identity.owner("key");
  await identity.owner("key");
  expect(seen.lookups).toBe(1);
  identity.forget(hashApiKey("key"));
  await identity.owner("key");
  expect(seen.lookups).toBe(2);
});

test("the uses of all keys are written together, and each key's once a minute", async () => {
  const { identity, uses, seen, clock } = setUp();
  const [one, two] = [hashApiKey("one"), hashApiKey("two")];
  for (const key of ["one", "two", "one"]) await identity.owner(key);
  await uses.flush();
  expect(seen.written).toEqual([
    [
      [one, clock.now],
      [two, clock.now],
    ],
  ]);
  clock.now += 59_999;
  await identity.owner("one");
  await uses.flush();
  expect(seen.written).toHaveLength(1);
  clock.now += 1;
  await identity.owner("one");
  await uses.flush();
  expect(seen.written[1]).toEqual([[one, clock.now]]);
});

test("a cached key ends at its expiry, and its use is not noted any more", async () => {
  const { identity, uses, seen, clock } = setUp(1_000_001);
  expect(await identity.owner("key")).toMatchObject({ project: { id: "p" } });
  await uses.flush();
  clock.now += 120_000;
  expect(await identity.owner("key")).toBe("expired");
  await uses.flush();
  expect(seen.written).toHaveLength(1);
});
