import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { noTemplate } from "../../../../orchestrator/templates/not-found.ts";

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

test("the error for the code interpreter's template names the command that makes it", () => {
  const command = "'./scripts/template code-interpreter-v1' makes the code interpreter's template";
  expect(noTemplate("code-interpreter-v1").message).toContain(`GET /templates; ${command}`);
  expect(noTemplate("Code-Interpreter-v1:default").message).toContain(command);
  expect(noTemplate("code-interpreter").message).toContain(`this platform calls it 'code-interpreter-v1': ${command}`);
});

test("the error for every template that comes with the platform names the command that makes it", () => {
  // That of the matrix is for tests alone.
  const starters = readdirSync(join(import.meta.dirname, "../../../../scripts/starters"));
  const named = starters.filter((name) => name !== "programs");
  expect(named).toContain("desktop");
  for (const name of named) expect(noTemplate(name).message).toContain(`; './scripts/template ${name}' makes `);
});

test("the error for the MCP gateway's template says why there is none, and offers no command that makes one", () => {
  const { message } = noTemplate("mcp-gateway");
  expect(message).toContain("this platform has no MCP gateway: the servers of the MCP catalogue are Docker images");
  expect(message).not.toContain("template create");
});

test.each(["No Name!", "a/b/c", "a:", ""])(
  "the error for '%s', which no template can be called, offers nothing to make",
  (text) => {
    expect(noTemplate(text).message).toBe(
      `template '${text}' not found: list templates with 'npx @e2b/cli template list' or GET /templates`,
    );
  },
);
