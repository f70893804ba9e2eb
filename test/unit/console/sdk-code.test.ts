/** The code that the console shows beside a form does what the form asks for. */

import { expect, test } from "vitest";
import { connectCode, createCode } from "../../../console/src/sandboxes/sdk-code.ts";

test("a form that asks for a template alone is one line of code", () => {
  expect(createCode({ templateID: "base" })).toEqual({
    typescript: 'import { Sandbox } from "e2b";\n\nconst sandbox = await Sandbox.create("base");',
    python: 'from e2b import Sandbox\n\nsandbox = Sandbox.create(\n    "base",\n)',
  });
});

test("every option of a form is in the code, under the SDK's name and in its unit", () => {
  const { typescript, python } = createCode({
    templateID: "my-app:v1",
    timeout: 300,
    metadata: { team: 'a "b"' },
    envVars: { MODE: "x" },
    allow_internet_access: false,
    network: { denyOut: ["10.0.0.0/8"] },
    volumeMounts: [{ name: "data", path: "/mnt/data" }],
    cpuCount: 2,
  });
  expect(typescript.split("\n")).toEqual([
    "// Only the request itself has cpuCount.",
    'import { Sandbox } from "e2b";',
    "",
    'const sandbox = await Sandbox.create("my-app:v1", {',
    "  timeoutMs: 300000,",
    '  metadata: {"team":"a \\"b\\""},',
    '  envs: {"MODE":"x"},',
    "  allowInternetAccess: false,",
    '  network: {"denyOut":["10.0.0.0/8"]},',
    '  volumeMounts: {"/mnt/data":"data"},',
    "});",
  ]);
  expect(python.split("\n").slice(3)).toEqual([
    "sandbox = Sandbox.create(",
    '    "my-app:v1",',
    "    timeout=300,",
    '    metadata={"team": "a \\"b\\""},',
    '    envs={"MODE": "x"},',
    "    allow_internet_access=False,",
    '    network={"deny_out": ["10.0.0.0/8"]},',
    '    volume_mounts={"/mnt/data": "data"},',
    ")",
  ]);
});

test("a rule with a secret is in the code of both languages, by the secret's name", () => {
  const rules = { "api.test": [{ transform: { headers: { "X-Key": "${e2b.secrets.openai}" } } }] };
  const { typescript, python } = createCode({ templateID: "base", network: { rules } });
  expect(typescript).toContain(`network: ${JSON.stringify({ rules })}`);
  expect(python).toContain(
    'network={"rules": {"api.test": [{"transform": {"headers": {"X-Key": "${e2b.secrets.openai}"}}}]}}',
  );
});

test("an id of a sandbox is a text of the language, whatever is in it", () => {
  expect(connectCode('i"); evil("').typescript).toContain('Sandbox.connect("i\\"); evil(\\"")');
});
