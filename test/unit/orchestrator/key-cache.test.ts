import { expect, test } from "vitest";
import { createIdentity } from "../../../orchestrator/api/key-cache.ts";
import type { KeyOwner } from "../../../orchestrator/store/keys.ts";
import { hashApiKey } from "../../../shared/ids.ts";

function setUp() {
  const seen = { lookups: 0, touches: 0 };
  const clock = { now: 1_000_000 };
  const identity = createIdentity({
    keys: {
      findOwner: (hash) => {
        seen.lookups++;
        return Promise.resolve({ keyId: hash, project: { id: "p" } } as unknown as KeyOwner);
      },
      touch: () => {
        seen.touches++;
        return Promise.resolve();
      },
    },
    background: { run: (_name, work) => void work(), settled: () => Promise.resolve() },
    now: () => clock.now,
  });
  return { identity, seen, clock };
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

test("a deleted key is looked up again, and the use of a key is noted once a minute", async () => {
  const { identity, seen, clock } = setUp();
  await identity.owner("key");
  await identity.owner("key");
  expect(seen).toEqual({ lookups: 1, touches: 1 });
  identity.forget(hashApiKey("key"));
  clock.now += 60_000;
  await identity.owner("key");
  expect(seen).toEqual({ lookups: 2, touches: 2 });
});
