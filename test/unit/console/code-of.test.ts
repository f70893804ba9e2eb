/** Acts of the console as code: the right ids, no secret, and texts that stay texts. */

import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import type { ActRequest } from "../../../console/src/base/performed.ts";
import { codeOf } from "../../../console/src/code/code-of.ts";
import { jsonWord, word } from "../../../console/src/code/literals.ts";
import { requests } from "../../../console/src/sandboxes/requests.ts";

const ID = "isb6f3b4nz";

test.each<[ActRequest, string | undefined, string]>([
  [requests.pause(ID), `svc sandbox pause ${ID}`, `await Sandbox.pause("${ID}");`],
  [requests.resume(ID), `svc sandbox resume ${ID} --timeout 300s`, `Sandbox.connect("${ID}", { timeoutMs: 300000 })`],
  [requests.kill(ID), `svc sandbox kill ${ID}`, `await Sandbox.kill("${ID}");`],
  [requests.setLife(ID, 3600), `svc sandbox timeout ${ID} 3600s`, `Sandbox.setTimeout("${ID}", 3600000)`],
  [requests.fork(ID), `svc sandbox fork ${ID} --count 1`, "sandbox.fork({ count: 1 })"],
  [requests.snapshot(ID, "it"), `svc snapshot create ${ID} --name it`, `createSnapshot("${ID}", { name: "it" })`],
  [requests.rewind(ID, "s1:default"), `svc sandbox rewind ${ID} s1:default`, `"/sandboxes/${ID}/rewind"`],
  [requests.replaceNetwork(ID, { allowOut: ["a.b"] }), undefined, `updateNetwork("${ID}", {"allowOut":["a.b"]})`],
  [{ method: "DELETE", path: "/templates/my%3Av1" }, "svc template delete my:v1", '"/templates/my%3Av1"'],
  [{ method: "DELETE", path: "/volumes/v1" }, "svc volume delete v1", 'Volume.destroy("v1")'],
  [
    { method: "DELETE", path: "/volumecontent/v1/path", body: { path: "/a b" } },
    undefined,
    'const volume = await Volume.connect("v1");\nawait volume.remove("/a b");',
  ],
  [{ method: "POST", path: "/volumecontent/v1/dir", body: { path: "/d" } }, undefined, 'await volume.makeDir("/d");'],
  [
    { method: "PUT", path: "/volumecontent/v1/file", body: { path: "/d/f" } },
    undefined,
    'await volume.writeFile("/d/f", new Blob([await readFile("./f")]), { force: true });',
  ],
  [
    { method: "POST", path: "/nodes/n1/drain", body: { running: "finish", atDeadline: "kill", deadlineSeconds: 60 } },
    "svc node drain n1 --deadline 60s --finish --at-deadline kill",
    "SVC_ADMIN_TOKEN",
  ],
  [
    { method: "PATCH", path: "/events/webhooks/w1", body: { enabled: false } },
    "svc webhook set w1 --disable",
    '"method"',
  ],
  [{ method: "POST", path: "/admin/projects", body: { name: "team blue" } }, "svc project create 'team blue'", "ADMIN"],
  [{ method: "POST", path: "/admin/projects", body: { name: "b", slug: "b1" } }, undefined, '"slug"'],
  [
    { method: "PATCH", path: "/admin/projects/p1", body: { limits: { sandboxes: 5 } } },
    "svc project limit p1 --limits sandboxes=5",
    "SVC_ADMIN_TOKEN",
  ],
  [
    { method: "PATCH", path: "/admin/projects/p1", body: { limits: { totalCPU: null } } },
    "svc project limit p1 --limits totalCPU=default",
    "SVC_ADMIN_TOKEN",
  ],
  [
    { method: "POST", path: "/admin/projects/p1/disable", body: { reason: "unpaid since May" } },
    "svc project disable p1 --reason 'unpaid since May'",
    "SVC_ADMIN_TOKEN",
  ],
  [{ method: "POST", path: "/admin/projects/p1/ban", body: {} }, undefined, "/admin/projects/p1/ban"],
  [{ method: "DELETE", path: "/admin/projects/p1" }, "svc project delete p1 --force", "SVC_ADMIN_TOKEN"],
  [
    { method: "POST", path: "/admin/teams/t1/api-keys", body: { name: "ci", scopes: ["read"] } },
    "svc key create ci --scope read --project t1",
    "SVC_ADMIN_TOKEN",
  ],
  [
    { method: "DELETE", path: "/admin/teams/t1/api-keys/k1" },
    "svc key delete k1 --project t1",
    "/admin/teams/t1/api-keys/k1",
  ],
])("%j is told with its ids", (request, svc, typescript) => {
  const code = codeOf(request);
  expect(code?.svc).toBe(svc);
  expect(code?.typescript).toContain(typescript === '"method"' ? 'method: "PATCH"' : typescript);
  expect(code?.http).toMatch(/^curl -X /m);
});

test("steps of something larger are not told", () => {
  expect(codeOf({ method: "POST", path: "/v2/templates/t/builds/b", body: {} })).toBeUndefined();
});

describe("secrets", () => {
  test.each<[string, ActRequest]>([
    ["the value of a secret", { method: "POST", path: "/secrets", body: { name: "openai", value: "hunter2" } }],
    ["its next value", { method: "POST", path: "/secrets/sec_1", body: { value: "hunter2" } }],
    [
      "the secret of a webhook",
      {
        method: "POST",
        path: "/events/webhooks",
        body: { name: "ops", url: "https://x.test", signatureSecret: "hunter2", events: ["sandbox.lifecycle.killed"] },
      },
    ],
    [
      "a variable with the name of a secret",
      { method: "POST", path: "/v2/sandboxes", body: { templateID: "base", envVars: { API_KEY: "hunter2" } } },
    ],
    [
      "the header of a rule",
      requests.replaceNetwork(ID, {
        rules: { "api.test": [{ transform: { headers: { Authorization: "Bearer hunter2" } } }] },
      }),
    ],
    ["the password of a proxy", requests.replaceNetwork(ID, { egressProxy: { address: "a:1", password: "hunter2" } })],
  ])("%s is in no form", (_what, request) => {
    const code = codeOf(request);
    expect(code).toBeDefined();
    expect(JSON.stringify(code)).not.toContain("hunter2");
  });

  test("code reads them from the environment", () => {
    const code = codeOf({
      method: "POST",
      path: "/v2/sandboxes",
      body: { templateID: "base", envVars: { API_KEY: "x", MODE: "fast" } },
    });
    expect(code?.svc).toBe('svc sandbox create base --env API_KEY="$API_KEY" --env MODE=fast');
    expect(code?.typescript).toContain('envs: {"API_KEY":process.env.API_KEY!,"MODE":"fast"}');
    expect(code?.python).toMatch(/^import os\n\nfrom e2b import Sandbox/);
    expect(code?.python).toContain('envs={"API_KEY": os.environ["API_KEY"], "MODE": "fast"}');
  });

  test("a placeholder, which names a secret, stays", () => {
    const headers = { Authorization: "Bearer ${e2b.secrets.openai}" };
    const code = codeOf(requests.replaceNetwork(ID, { rules: { "api.test": [{ transform: { headers } }] } }));
    expect(code?.http).toContain('"Bearer ${e2b.secrets.openai}"');
  });
});

describe("a shell gets each word as it is", () => {
  const hostile = ["it's", "$(touch /tmp/x)", "a b", "`id`", "a\nb", "\u001b]0;x\u0007", "back\\slash's\n", "ü"];
  test.each(hostile)("%j", (text) => {
    const printed = execFileSync("bash", ["-c", `printf %s ${word(text)}`], { encoding: "utf8" });
    expect(printed).toBe(text);
  });

  test("in JSON too, with what the environment has", () => {
    const request = { method: "POST", path: "/secrets", body: { name: "it's $(id)", value: "hunter2" } };
    const data = /-d (.*)$/s.exec(codeOf(request)?.http ?? "")?.[1] ?? "";
    const printed = execFileSync("bash", ["-c", `printf %s ${data}`], {
      encoding: "utf8",
      env: { SECRET_VALUE: "of the environment" },
    });
    expect(JSON.parse(printed)).toEqual({ name: "it's $(id)", value: "of the environment" });
    expect(jsonWord({ a: "'" })).toBe(`'{"a":"'\\''"}'`);
  });
});

test("a file's name stays a name in every form", () => {
  const path = '/home/user/$(id) "x"';
  const code = codeOf({ method: "POST", path: `/sandboxes/${ID}/envd/files`, body: { path } });
  expect(code?.svc).toBe(`svc sandbox cp './$(id) "x"' '${ID}:/home/user/$(id) "x"'`);
  expect(code?.typescript).toContain(`sandbox.files.write(${JSON.stringify(path)}`);
  expect(code?.http).toContain("/files?path=%2Fhome%2Fuser%2F%24%28id%29+%22x%22");
});
