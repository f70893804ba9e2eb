/** The page tells an operator what a change of a project does. */

import { expect, test } from "vitest";
import {
  labelsIn,
  labelText,
  limitChange,
  limitMeaning,
  meaningOf,
} from "../../../../console/src/platform/projects/words.ts";

const limits = { sandboxes: { used: 8 }, sandboxCPU: { used: null } };

test("an act on a project says what ends, what stays and whether it can be undone", () => {
  const project = { name: "blue", running: 1 };
  expect(meaningOf("disable", project)).toMatch(/only read and delete.*Its 1 running sandbox stays until its end/);
  expect(meaningOf("ban", { name: "blue", running: undefined })).toMatch(/Its running sandboxes stay until their end/);
  expect(meaningOf("kill", { name: "blue", running: 3 })).toMatch(/those that are paused too; 3 run now/);
  expect(meaningOf("cancel", project)).toMatch(/‘blue’/);
  expect(meaningOf("delete", { name: "blue", running: 0 })).toMatch(/Nothing of ‘blue’ comes back.*\(0 run now\)/);
});

test.each([
  ["sandboxes", "20", "‘sandboxes’: at most 20 (8 used now)."],
  [
    "sandboxes",
    "5",
    "‘sandboxes’: at most 5 (8 used now). What is there stays, and nothing is added before it is less.",
  ],
  ["sandboxes", "", "‘sandboxes’: the platform’s limit holds again (8 used now)."],
  ["sandboxCPU", "2", "‘sandboxCPU’: at most 2 (it is of each sandbox)."],
])("the limit %s with %j in its field says what it means", (name, text, expected) => {
  expect(limitMeaning(name, limits, text)).toBe(expected);
});

test("an empty field gives a limit back to the platform", () => {
  expect([limitChange("volumes", ""), limitChange("volumes", "0")]).toEqual([{ volumes: null }, { volumes: 0 }]);
});

test("labels of nodes are written as name=value, and what is none is named", () => {
  expect(labelsIn(" disk=fast , team=blue=2,")).toEqual({ disk: "fast", team: "blue=2" });
  expect(labelsIn(labelText({ disk: "fast", team: "" }))).toEqual({ disk: "fast", team: "" });
  expect(labelsIn("")).toEqual({});
  expect(() => labelsIn("disk")).toThrow("‘disk’ is no label: write name=value");
});
