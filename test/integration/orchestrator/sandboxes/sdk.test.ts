/** The published SDK against the control plane: everything it does with a sandbox without envd. */

import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const options = () => ({ apiKey: cluster.key, apiUrl: cluster.url, sandboxUrl: cluster.edgeUrl });

test("the SDK's create, getInfo, setTimeout, connect, list and kill work", async () => {
  const sandbox = await Sandbox.create("base", { ...options(), metadata: { user: "a b&c=d" }, timeoutMs: 60_000 });
  const info = await sandbox.getInfo();
  expect(info).toMatchObject({
    sandboxId: sandbox.sandboxId,
    name: "base",
    state: "running",
    metadata: { user: "a b&c=d" },
  });

  const asked = Date.now();
  await sandbox.setTimeout(120_000);
  const { endAt } = await sandbox.getInfo();
  expect(endAt.getTime()).toBeGreaterThanOrEqual(asked + 119_000);
  expect(endAt.getTime()).toBeLessThanOrEqual(Date.now() + 121_000);
  const again = await Sandbox.connect(sandbox.sandboxId, options());
  expect(again.sandboxId).toBe(sandbox.sandboxId);

  const page = await Sandbox.list({ ...options(), query: { metadata: { user: "a b&c=d" } } }).nextItems();
  expect(page.map(({ sandboxId }) => sandboxId)).toEqual([sandbox.sandboxId]);
  expect(await sandbox.kill()).toBe(true);
  expect(await sandbox.kill()).toBe(false);
  await expect(Sandbox.connect(sandbox.sandboxId, options())).rejects.toThrow("not found");
});

test("the SDK's pages end where the data end", async () => {
  for (let index = 0; index < 4; index++) await Sandbox.create("base", { ...options(), metadata: { page: "yes" } });
  const paginator = Sandbox.list({ ...options(), limit: 2, query: { metadata: { page: "yes" } } });
  expect((await paginator.nextItems()).length).toBe(2);
  expect(paginator.hasNext).toBe(true);
  expect((await paginator.nextItems()).length).toBe(2);
  expect(paginator.hasNext).toBe(false);
});

test("a wrong key and an unknown template are the SDK's own errors", async () => {
  await expect(Sandbox.create("base", { ...options(), apiKey: `svc_${"0".repeat(40)}` })).rejects.toThrow(
    "Unauthorized",
  );
  await expect(Sandbox.create("nosuch", options())).rejects.toThrow("template 'nosuch' not found: list templates with");
});

test("the SDK's options and packages that need another template get an error that says what to do", async () => {
  await expect(Sandbox.create({ ...options(), mcp: { fetch: {} } })).rejects.toThrow(
    "template 'mcp-gateway' not found: list templates with 'npx @e2b/cli template list' or GET /templates; " +
      "the option 'mcp' needs it, and this platform has no MCP gateway",
  );
  await expect(Sandbox.create("code-interpreter-v1", options())).rejects.toThrow(
    "./scripts/template code-interpreter-v1",
  );
});
