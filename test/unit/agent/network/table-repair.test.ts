/** When the firewall's table counts as changed: not because a listing failed, and not at the first look. */

import { expect, test } from "vitest";
import { SLOT_SETS } from "../../../../agent/network/firewall-rules.ts";
import { createTableRepair, type Look, lookAtTable } from "../../../../agent/network/table-repair.ts";

const whole = JSON.stringify({ nftables: SLOT_SETS.map((name) => ({ set: { name } })) });
const expected = { rules: "the rules", slots: new Map() };
const failing = (message: string) => () => Promise.reject(new Error(message));

/** Answers nft's two listings: the rules, and the contents of the sets. */
const listing = (rules: () => Promise<string>, sets: () => Promise<string>) => (first: string | undefined) =>
  first === "-j" ? sets() : rules();
const says = (text: string) => () => Promise.resolve(text);

test.each([
  ["its rules and sets are the expected ones", says("the rules"), says(whole), "same"],
  ["it has another rule", says("other rules"), says(whole), "changed"],
  ["a set has an element more", says("the rules"), says(whole.replace('"free"', '"free","elem":["x"]')), "changed"],
  ["it is gone", failing("nft … ended with 1: Error: No such file or directory"), says(whole), "changed"],
  ["it went between the listings", says("the rules"), failing("Error: No such file or directory"), "changed"],
] as const)("a table of which %s is told apart", async (_what, rules, sets, is) => {
  expect(await lookAtTable((...how) => listing(rules, sets)(how[0]), expected)).toEqual({ is });
});

test.each([
  ["ends at its time limit", failing("nft -s -t list table inet svc ended with SIGKILL: "), says(whole), "SIGKILL"],
  ["cannot be started", says("the rules"), failing("cannot run nft"), "cannot run nft"],
  ["is cut off", says("the rules"), says(whole.slice(0, -5)), "cut off"],
  ["is empty", says("the rules"), says(""), "cut off"],
] as const)("a listing that %s says nothing about the table", async (_what, rules, sets, message) => {
  expect(await lookAtTable((...how) => listing(rules, sets)(how[0]), expected)).toMatchObject({
    is: "unread",
    error: expect.objectContaining({ message: expect.stringContaining(message) }) as unknown,
  });
});

const SAME: Look = { is: "same" };
const CHANGED: Look = { is: "changed" };
const UNREAD: Look = { is: "unread", error: new Error("nft did not answer") };

/** A table that looks so, one look after the other; `changeAt` is the look during which this node changes the table. */
function table(looks: readonly Look[], changeAt?: number) {
  const seen = { looks: 0, changes: 0, putBack: 0, unread: [] as string[] };
  const repair = createTableRepair({
    look: () => {
      if (seen.looks === changeAt) seen.changes++;
      const look = looks[seen.looks++];
      return look === undefined ? Promise.reject(new Error("one look too many")) : Promise.resolve(look);
    },
    changes: () => seen.changes,
    alone: (work) => work(),
    putBack: () => {
      seen.putBack++;
      return Promise.resolve();
    },
    unread: ({ message }) => void seen.unread.push(message),
  });
  return { seen, repair };
}

test.each([
  ["that is as expected is looked at once", [SAME], undefined, false],
  ["that this node changed meanwhile is looked at again", [SAME, SAME], 0, false],
  ["that looks changed once is left alone", [CHANGED, SAME], undefined, false],
  ["that could not be read once is left alone", [UNREAD, SAME], undefined, false],
  ["that looks changed twice is put back", [CHANGED, CHANGED], undefined, true],
  ["that could not be read at first and is changed is put back", [UNREAD, CHANGED], undefined, true],
] as const)("a table %s", async (_what, looks, changeAt, putBack) => {
  const { seen, repair } = table(looks, changeAt);
  expect(await repair()).toBe(putBack);
  expect(seen).toMatchObject({ looks: looks.length, putBack: Number(putBack), unread: [] });
});

test("a table that cannot be read is said to be so, and is replaced at the third time in a row", async () => {
  const { seen, repair } = table([UNREAD, UNREAD, CHANGED, UNREAD, SAME, ...Array.from({ length: 6 }, () => UNREAD)]);
  expect([await repair(), await repair()]).toEqual([false, false]);
  expect(seen.unread).toEqual(["nft did not answer", "nft did not answer"]);
  // It was read: the count begins anew.
  expect(await repair()).toBe(false);
  expect([await repair(), await repair(), await repair()]).toEqual([false, false, true]);
  expect(seen).toMatchObject({ looks: 11, putBack: 1 });
});

test("a table that cannot be put back is tried again by the next repair", async () => {
  const looks: Look[] = [CHANGED, CHANGED, CHANGED, CHANGED];
  const tries: string[] = [];
  const repair = createTableRepair({
    look: () => Promise.resolve(looks.shift() ?? SAME),
    changes: () => 0,
    alone: (work) => work(),
    putBack: () => (tries.push("put back") === 1 ? Promise.reject(new Error("nft ended")) : Promise.resolve()),
    unread: () => undefined,
  });
  await expect(repair()).rejects.toThrow("nft ended");
  expect(await repair()).toBe(true);
});
