/** Which hosts get a secret. */

import { expect, test } from "vitest";
import { hostsOf } from "../../../console/src/stored/secret-hosts.ts";

const sandbox = (sandboxID: string, rules: Readonly<Record<string, Readonly<Record<string, string>>>>) => ({
  sandboxID,
  network: {
    rules: Object.fromEntries(Object.entries(rules).map(([host, headers]) => [host, [{ transform: { headers } }]])),
  },
});
const OPENAI = "Bearer ${e2b.secrets.OpenAI}";

test("the hosts of a secret are those whose rules name it, with their headers and sandboxes", () => {
  const sandboxes = [
    sandbox("s1", { "api.openai.com": { Authorization: OPENAI }, "other.test": { "X-Key": "${e2b.secrets.openai2}" } }),
    sandbox("s2", { "api.openai.com": { "X-Key": "${svc.secrets.openai}" }, "*.a.test": { Authorization: OPENAI } }),
    { sandboxID: "s3" },
  ];
  expect(hostsOf("openai", sandboxes)).toEqual([
    { host: "*.a.test", headers: ["Authorization"], sandboxes: ["s2"] },
    { host: "api.openai.com", headers: ["Authorization", "X-Key"], sandboxes: ["s1", "s2"] },
  ]);
});

test("a secret whose name is the beginning of another one's has not its hosts", () => {
  expect(hostsOf("open", [sandbox("s1", { "api.openai.com": { Authorization: OPENAI } })])).toEqual([]);
});

test("a rule that sets no header gives nothing to its host", () => {
  expect(hostsOf("openai", [{ sandboxID: "s1", network: { rules: { "a.test": [{}], "b.test": [] } } }])).toEqual([]);
});
