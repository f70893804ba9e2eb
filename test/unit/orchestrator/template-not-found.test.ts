import { expect, test } from "vitest";
import { noTemplate } from "../../../orchestrator/templates/not-found.ts";

test("the error for an unknown template says how to list templates and how to make this one", () => {
  expect(noTemplate("my-app:v1").message).toBe(
    "template 'my-app:v1' not found: list templates with 'npx @e2b/cli template list' or GET /templates; " +
      "'npx @e2b/cli template create my-app' makes one from a Dockerfile",
  );
});

test("the error for a name in another project's namespace does not offer to make the template", () => {
  expect(noTemplate("blue/my-app").message).toBe(
    "template 'blue/my-app' not found: list templates with 'npx @e2b/cli template list' or GET /templates",
  );
});

test("the error for a template that SDKs request by default says that the platform does not include it", () => {
  expect(noTemplate("code-interpreter-v1").message).toContain(
    "'code-interpreter-v1' is not part of this platform: 'npx @e2b/cli template create code-interpreter-v1' makes one",
  );
});

test.each(["No Name!", "a/b/c", "a:", ""])(
  "the error for '%s', which no template can be called, offers nothing to make",
  (text) => {
    expect(noTemplate(text).message).toBe(
      `template '${text}' not found: list templates with 'npx @e2b/cli template list' or GET /templates`,
    );
  },
);
