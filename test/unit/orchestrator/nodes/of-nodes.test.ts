import { expect, test } from "vitest";
import { ofNodes } from "../../../../orchestrator/nodes/of-nodes.ts";

test("values of removed nodes go when a further node gets one, and those of other nodes stay", () => {
  const known = new Set(["n1", "n2", "n3"]);
  const dropped: string[] = [];
  const values = ofNodes<string>(
    (id) => known.has(id),
    (value) => dropped.push(value),
  );
  values.set("n1", "of n1");
  values.set("n2", "of n2");
  known.delete("n1");
  values.set("n2", "of n2 again");
  expect(values.get("n1")).toBe("of n1");
  values.set("n3", "of n3");
  expect([values.get("n1"), values.get("n2"), values.get("n3")]).toEqual([undefined, "of n2 again", "of n3"]);
  expect([...values.values()]).toEqual(["of n2 again", "of n3"]);
  expect(dropped).toEqual(["of n1"]);
});
