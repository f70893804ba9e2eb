/** `svc mcp` as an agent's host uses it: the SDK's own client over standard input and output, and a real envd inside. */

import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../support/cluster/cluster.ts";
import { sharedEnvd } from "../envd/running-envd.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

const { envd } = sharedEnvd();
let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
const variables = () => ({ SVC_API_URL: cluster.url, SVC_SANDBOX_URL: envd.url, SVC_API_KEY: cluster.key });
const svc = builtSvc(variables);

async function host(...words: readonly string[]): Promise<Client> {
  const client = new Client({ name: "host", version: "1" });
  const env = { PATH: process.env["PATH"] ?? "", HOME: svc.folder, ...variables() };
  const args = [join(svc.folder, "cli/main.js"), "mcp", ...words];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" }));
  onTestFinished(() => client.close());
  return client;
}

interface Answer {
  readonly text: string;
  readonly failed: boolean;
}

async function call(client: Client, name: string, given: Record<string, unknown> = {}): Promise<Answer> {
  const result = (await client.callTool({ name, arguments: given })) as CallToolResult;
  const [first] = result.content;
  return { text: first?.type === "text" ? first.text : "", failed: result.isError === true };
}

test("lists its tools with what they take", SLOW, async () => {
  const { tools } = await (await host()).listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    "create_sandbox",
    "list_sandboxes",
    "run_command",
    "run_code",
    "read_file",
    "write_file",
    "list_files",
    "fork_sandbox",
    "snapshot_sandbox",
    "rewind_sandbox",
    "kill_sandbox",
  ]);
  expect(tools.find(({ name }) => name === "run_command")?.inputSchema.required).toEqual(["sandbox_id", "command"]);
});

describe("in a sandbox that it has created", () => {
  let id: string;
  let client: Client;
  const inside = (name: string, given: Record<string, unknown>) => call(client, name, { sandbox_id: id, ...given });
  test("runs commands, programs, and reads and writes files", SLOW, async () => {
    client = await host("--name", "work");
    ({ text: id } = await call(client, "create_sandbox"));
    expect(await inside("run_command", { command: "echo out; echo err >&2; exit 3" })).toEqual({
      text: "exit code 3\nstdout:\nout\n\nstderr:\nerr\n",
      failed: true,
    });
    expect(await inside("run_code", { code: "print(6 * 7)" })).toEqual({
      text: "exit code 0\nstdout:\n42\n",
      failed: false,
    });
    expect((await inside("run_code", { language: "javascript", code: "console.log([1].length)" })).text).toContain("1");
    expect((await inside("run_command", { command: "sleep 600", timeout_seconds: 1 })).text).toBe("ended after 1 s");

    const path = `${envd.home}/notes/ü.txt`;
    expect((await inside("write_file", { path, content: "kept" })).text).toBe(`4 bytes written to ${path}`);
    expect(await inside("read_file", { path })).toEqual({ text: "kept", failed: false });
    expect((await inside("list_files", { path: `${envd.home}/notes` })).text).toBe(`file 4 ${path}`);
    await inside("run_command", {
      command: `printf '\\377\\000' > ${envd.home}/b; head -c 2000000 /dev/zero > ${envd.home}/l`,
    });
    expect((await inside("read_file", { path: `${envd.home}/b` })).text).toBe("base64:\n/wA=");
    expect(await inside("read_file", { path: `${envd.home}/l` })).toMatchObject({ failed: true });
    const long = await inside("run_command", { command: "seq 100000" });
    expect(long.text).toMatch(/bytes left out/);
    expect(long.text.length).toBeLessThan(70_000);
    expect(long.text.endsWith("100000\n")).toBe(true);
  });
});

test("has no more sandboxes than its limit, whatever is asked for at once", SLOW, async () => {
  const client = await host("--name", "few", "--limit", "2");
  const answers = await Promise.all([1, 2, 3].map(() => call(client, "create_sandbox")));
  expect(answers.filter(({ failed }) => failed)).toEqual([
    {
      text: "2 sandboxes are there, and this server may have 2 at a time\nkill one that is not needed any more",
      failed: true,
    },
  ]);
  const [first] = answers.filter(({ failed }) => !failed);
  expect(await call(client, "fork_sandbox", { sandbox_id: first?.text ?? "" })).toMatchObject({ failed: true });
  expect((await call(client, "kill_sandbox", { sandbox_id: first?.text ?? "" })).failed).toBe(false);
  expect((await call(client, "create_sandbox")).failed).toBe(false);
});

test("a fork counts, and is one of its sandboxes", SLOW, async () => {
  const client = await host("--name", "forks", "--limit", "3");
  const { text: source } = await call(client, "create_sandbox");
  const { text, failed } = await call(client, "fork_sandbox", { sandbox_id: source, count: 2 });
  expect(failed).toBe(false);
  const listed = JSON.parse((await call(client, "list_sandboxes")).text) as { sandboxID: string }[];
  expect(new Set(listed.map(({ sandboxID }) => sandboxID))).toEqual(new Set([source, ...text.split("\n")]));
});

test("rewinds a sandbox to its snapshot, which goes with it", SLOW, async () => {
  const client = await host("--name", "rewinds");
  const { text: id } = await call(client, "create_sandbox");
  const { text: snapshot, failed } = await call(client, "snapshot_sandbox", { sandbox_id: id });
  expect(failed).toBe(false);
  expect(await call(client, "rewind_sandbox", { sandbox_id: id, snapshot_id: snapshot })).toEqual({
    text: `sandbox ${id} is as it was at ${snapshot}`,
    failed: false,
  });
  expect(await svc.out(["snapshot", "list", "-o", "name"])).toContain(snapshot);
  expect(await call(client, "rewind_sandbox", { sandbox_id: id, snapshot_id: "snap-of-nobody" })).toMatchObject({
    failed: true,
  });
  expect(await call(client, "kill_sandbox", { sandbox_id: id })).toEqual({
    text: `sandbox ${id} is killed`,
    failed: false,
  });
  expect(await svc.out(["snapshot", "list", "-o", "name"])).not.toContain(snapshot);
});

test("a sandbox that another one has created is none of its own", SLOW, async () => {
  const other = await svc.out(["sandbox", "create", "base"]);
  const client = await host("--name", "own");
  for (const name of ["kill_sandbox", "fork_sandbox", "snapshot_sandbox", "rewind_sandbox"]) {
    expect(await call(client, name, { sandbox_id: other, snapshot_id: "of-another" })).toEqual({
      text: `sandbox ${other} is not of this server`,
      failed: true,
    });
  }
  expect((await call(client, "run_command", { sandbox_id: other, command: "true" })).failed).toBe(true);
  expect((await svc.run(["sandbox", "info", other])).code).toBe(0);
});

test("without a key that works it ends, and says so", SLOW, async () => {
  const { code, stdout, stderr } = await svc.run(["mcp"], {
    env: { SVC_API_KEY: "svc_00000000000000000000000000000000" },
  });
  expect([code, stdout]).toEqual([4, ""]);
  expect(stderr).toContain("svc auth whoami");
});
