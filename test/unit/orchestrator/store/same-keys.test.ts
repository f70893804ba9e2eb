import { expect, test } from "vitest";
import { checkSameKeys, type SharedKeys } from "../../../../orchestrator/store/membership/same-keys.ts";

const other = (keys: SharedKeys | null) => [{ id: "o1", keys: keys === null ? null : JSON.stringify(keys) }];
const check = (mine: readonly string[], theirs: readonly string[]) => () =>
  checkSameKeys({ SVC_SEED: mine }, other({ SVC_SEED: theirs }));

test("orchestrators with the same current key start beside each other, whatever their earlier ones", () => {
  expect(check(["a"], ["a"])).not.toThrow();
  expect(check(["a", "b"], ["a"])).not.toThrow();
});

test("during a rotation each knows the other's current key", () => {
  expect(check(["new", "old"], ["old", "new"])).not.toThrow();
  expect(check(["new", "old"], ["old"])).toThrow(
    /SVC_SEED is not known to the orchestrator o1.*SVC_SEED_PREVIOUS first/,
  );
});

test("an orchestrator without the key of the others is refused", () => {
  expect(check(["b"], ["a"])).toThrow(/SVC_SEED is another than that of the orchestrator o1.*give both the same/);
});

test("a member of a version that names no keys is not compared", () => {
  expect(() => checkSameKeys({ SVC_SEED: ["a"] }, other(null))).not.toThrow();
});
