import { expect, test } from "vitest";
import { openDatabase } from "../../../../agent/store/database/database.ts";
import { logStore } from "../../../../agent/store/logs.ts";

test("pruning deletes lines older than a time, and the oldest of all sandboxes beyond their number", () => {
  const store = logStore(openDatabase(":memory:"), 4);
  const line = (at: number) => ({ seq: at, at, level: "info" as const, message: String(at), fields: {} });
  const left = () =>
    ["a", "b"].flatMap((id) => store.read(id, { limit: 100, direction: "forward" }).map(({ message }) => message));
  store.add("a", [1, 2, 3].map(line));
  store.add("b", [4, 5, 6, 7].map(line));
  store.prune(0);
  expect(left()).toEqual(["4", "5", "6", "7"]);
  store.prune(6);
  expect(left()).toEqual(["6", "7"]);
});
