import { expect, test } from "vitest";
import type { PausedSandbox } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { readSigned, type Signed } from "../../../../orchestrator/edge/signed-url.ts";
import { createSigners } from "../../../../orchestrator/edge/signers.ts";
import { fileSignature } from "../../../../shared/ids.ts";

const AT_ONCE = 60;
const STRANGER = "198.51.100.7";

function setUp() {
  const clock = { now: 1_000_000 };
  const running = new Map(["one", "two", "three"].map((id) => [id, { sandboxId: id, envdAccessToken: `token-${id}` }]));
  const paused: PausedSandbox[] = [{ sandboxId: "resting", envdAccessToken: "token-resting" }];
  const counts = { searches: 0 };
  const signers = createSigners({
    routes: {
      lookup: (id) => running.get(id),
      byToken: (token) => [...running.values()].find(({ envdAccessToken }) => envdAccessToken === token),
      running() {
        counts.searches += 1;
        return running.values();
      },
    },
    pausedSandboxes: () => Promise.resolve(paused),
    now: () => clock.now,
  });
  return { clock, running, paused, counts, find: signers.find, findHolder: signers.findHolder };
}

function signed(sandboxId: string, path = "a.txt"): Signed {
  const signature = fileSignature({ path, operation: "read", username: "", token: `token-${sandboxId}` });
  const found = readSigned("GET", `/files?${new URLSearchParams({ path, signature }).toString()}`);
  if (found === undefined) throw new Error("not signed");
  return found;
}

test("a signature that was right is looked up without a search, running or paused", async () => {
  const { counts, find, running, paused } = setUp();
  for (let round = 0; round < 3; round++) {
    expect(await find(signed("two"), STRANGER)).toMatchObject({ is: "running", route: { sandboxId: "two" } });
    expect(await find(signed("resting"), STRANGER)).toEqual({ is: "paused", sandboxId: "resting" });
  }
  expect(counts.searches).toBe(2);
  running.delete("two");
  expect(await find(signed("two"), STRANGER)).toEqual({ is: "wrong" });
  paused.push({ sandboxId: "two", envdAccessToken: "token-two" });
  expect(await find(signed("two"), STRANGER)).toEqual({ is: "paused", sandboxId: "two" });
});

test("a right signature on another path is wrong, before and after it is remembered", async () => {
  const { find, counts } = setUp();
  const moved = { ...signed("two"), path: "b.txt" };
  expect(await find(moved, STRANGER)).toEqual({ is: "wrong" });
  await find(signed("two"), STRANGER);
  expect(await find(moved, STRANGER)).toEqual({ is: "wrong" });
  expect(counts.searches).toBe(2);
});

test("an address with too many wrong signatures waits; other addresses and known signatures do not", async () => {
  const { clock, find, counts } = setUp();
  await find(signed("two"), STRANGER);
  for (let round = 0; round < AT_ONCE; round++) {
    expect(await find(signed("nobody", `${round}`), STRANGER)).toEqual({ is: "wrong" });
  }
  const searches = counts.searches;
  expect(await find(signed("nobody"), STRANGER)).toEqual({ is: "later", retryAfterSeconds: 1 });
  expect(await find(signed("two"), STRANGER)).toMatchObject({ is: "running" });
  expect(counts.searches).toBe(searches);
  expect(await find(signed("nobody"), "198.51.100.8")).toEqual({ is: "wrong" });
  clock.now += 1_000;
  expect(await find(signed("nobody"), STRANGER)).toEqual({ is: "wrong" });
  expect(await find(signed("nobody"), STRANGER)).toMatchObject({ is: "later" });
  clock.now += 1_000;
  expect(await find(signed("three"), STRANGER)).toMatchObject({ is: "running" });
  expect(await find(signed("one"), STRANGER)).toMatchObject({ is: "running" });
});

test("parallel wrong signatures count as well", async () => {
  const { find } = setUp();
  const all = Array.from({ length: 3 * AT_ONCE }, (_, index) => find(signed("nobody", `${index}`), STRANGER));
  await Promise.all(all);
  expect(await find(signed("nobody"), STRANGER)).toMatchObject({ is: "later" });
});

test("right signatures are never counted", async () => {
  const { find } = setUp();
  for (let round = 0; round < 3 * AT_ONCE; round++) {
    expect(await find(signed("two", `${round}`), STRANGER)).toMatchObject({ is: "running" });
    expect(await find(signed("resting", `${round}`), STRANGER)).toMatchObject({ is: "paused" });
  }
});

test("a token finds its sandbox without a search, running or paused, and wrong ones count with wrong signatures", async () => {
  const { counts, find, findHolder, clock } = setUp();
  expect(await findHolder("token-two", STRANGER)).toMatchObject({ is: "running", route: { sandboxId: "two" } });
  expect(await findHolder("token-resting", STRANGER)).toEqual({ is: "paused", sandboxId: "resting" });
  for (const token of ["", "token", "token-twoo"]) expect(await findHolder(token, STRANGER)).toEqual({ is: "wrong" });
  expect(counts.searches).toBe(0);
  for (let count = 3; count < AT_ONCE; count++) await findHolder(`wrong-${count}`, STRANGER);
  expect(await findHolder("token-resting", STRANGER)).toMatchObject({ is: "later" });
  expect(await find(signed("three"), STRANGER)).toMatchObject({ is: "later" });
  // The token of a running sandbox costs no search, and other addresses do not wait.
  expect(await findHolder("token-two", STRANGER)).toMatchObject({ is: "running" });
  expect(await findHolder("token-resting", "198.51.100.8")).toMatchObject({ is: "paused" });
  clock.now += 2_000;
  expect(await findHolder("token-resting", STRANGER)).toMatchObject({ is: "paused" });
});
