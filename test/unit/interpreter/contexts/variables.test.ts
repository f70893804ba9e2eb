import { expect, test } from "vitest";
import { languageName } from "../../../../interpreter/contexts/contexts.ts";
import { difference, possible } from "../../../../interpreter/contexts/variables.ts";

test("a kernel gets only the variables that differ", () => {
  expect(difference({ PATH: "/bin", A: "1" }, { B: "2" }, { PATH: "/bin", A: "1", B: "2", C: "3" })).toEqual({
    set: { C: "3" },
    remove: [],
  });
});

test("a variable that is no longer wanted gets the value from before, or goes", () => {
  expect(difference({ PATH: "/bin" }, { PATH: "/x", A: "1", B: "2" }, { B: "2" })).toEqual({
    set: { PATH: "/bin" },
    remove: ["A"],
  });
});

test("names of properties of every object are ordinary names", () => {
  expect(difference({}, {}, { constructor: "1" })).toEqual({ set: { constructor: "1" }, remove: [] });
  expect(difference({}, { toString: "1" }, {})).toEqual({ set: {}, remove: ["toString"] });
});

test("what no process can have as a variable is left out", () => {
  expect(possible({ A: "1", "": "x", "B=C": "x", "D\0": "x", E: "\0", F: 5, G: null, H: "" })).toEqual({
    A: "1",
    H: "",
  });
});

test.each([
  [undefined, "python"],
  ["", "python"],
  [" JS ", "javascript"],
  ["Ts", "typescript"],
  ["constructor", "constructor"],
])("the language %j is %s", (given, name) => {
  expect(languageName(given)).toBe(name);
});
