/** Settings that a program gets as files, by systemd's LoadCredential= or by `supervise`, and not in its environment. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readAgentConfig } from "../../../agent/config.ts";
import { withCredentials } from "../../../shared/program/service/credentials.ts";

const TOKEN = "a token of sixteen or more";

function credentials(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-credentials-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

test("the settings of the files are the program's, the operator's own last, and the environment keeps what it had", () => {
  const directory = credentials({
    settings: `# Made by scripts/up.\nSVC_NODE_TOKEN=${TOKEN}\nSVC_AGENT_PORT=5010\n`,
    "own-settings": 'SVC_AGENT_PORT="5999"\nSVC_LABELS="a=\\"b\\""\nNODE_EXTRA_CA_CERTS="/etc/ca.pem"\n',
  });
  const environment = { CREDENTIALS_DIRECTORY: directory, SVC_AGENT_PORT: "1", SVC_NODE_ID: "n", PATH: "/bin" };
  const read = withCredentials(environment);
  expect(read).toEqual({
    SVC_NODE_TOKEN: TOKEN,
    SVC_AGENT_PORT: "5999",
    SVC_LABELS: 'a="b"',
    SVC_NODE_ID: "n",
    NODE_EXTRA_CA_CERTS: "/etc/ca.pem",
    PATH: "/bin",
  });
  expect(environment).not.toHaveProperty("SVC_NODE_TOKEN");
  expect(readAgentConfig(read)).toMatchObject({ nodeToken: TOKEN, agentPort: 5999, nodeId: "n" });
});

test.each([
  ["no directory", {}],
  ["an empty name", { CREDENTIALS_DIRECTORY: "" }],
  ["credentials of another kind", { CREDENTIALS_DIRECTORY: "/nowhere" }],
])("with %s the settings are those of the environment", (_what, variables: Record<string, string>) => {
  expect(withCredentials({ ...variables, SVC_NODE_ID: "n" })).toEqual({ SVC_NODE_ID: "n" });
});

test("a credential that cannot be read is a wrong setting, and no program without its settings", () => {
  const directory = credentials({});
  mkdirSync(join(directory, "settings"));
  expect(() => withCredentials({ CREDENTIALS_DIRECTORY: directory })).toThrow(
    `the settings in ${directory}/settings cannot be read: EISDIR`,
  );
});
