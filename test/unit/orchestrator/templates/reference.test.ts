/** How a template is named: namespace, name and tag. */

import { describe, expect, test } from "vitest";
import { parseTemplateReference } from "../../../../orchestrator/templates/reference.ts";

describe("template references", () => {
  test.each([
    ["base", { namespace: undefined, name: "base", tag: "default" }],
    [" Base ", { namespace: undefined, name: "base", tag: "default" }],
    ["base:default", { namespace: undefined, name: "base", tag: "default" }],
    ["team/my_app-2:v1.0", { namespace: "team", name: "my_app-2", tag: "v1.0" }],
  ])("'%s' is read as %j", (text, expected) => {
    expect(parseTemplateReference(text)).toEqual(expected);
  });

  test.each(["", " ", "a b", "a/b/c", "/a", "a/", "a:", ":a", "a:b:c", "ä", "a:00000000-0000-4000-8000-000000000000"])(
    "'%s' is refused",
    (text) => {
      expect(() => parseTemplateReference(text)).toThrow("Invalid template reference");
    },
  );
});
