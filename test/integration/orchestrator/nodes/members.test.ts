/** Sandboxes on a node that has joined: all that passes between its machine and the orchestrator's has TLS on real sockets. */

import { createServer } from "node:http";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { templateFiles } from "../../../../agent/builds/steps/template-files.ts";
import { createOrchestrators } from "../../../../agent/joining/orchestrators.ts";
import { startValues } from "../../../../agent/placeholders/start-values.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { joinCluster, nodesUrlOf, startMember } from "../../../support/cluster/members.ts";

const log = createLog({ component: "test", level: "silent" });

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0 } });
});
afterEach(() => cluster.stop());

const create = (body: object = {}) => cluster.ask("POST", "/sandboxes", { body: { templateID: "base", ...body } });

test("a sandbox starts, is paused, wakes and ends on a node that speaks TLS only", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster));
  expect(agent.url).toMatch(/^https:/);
  const made = await create();
  expect(made.status, made.text).toBe(201);
  const { sandboxID } = made.body as { sandboxID: string };
  expect(agent.starts.map(({ body }) => body.sandboxId)).toEqual([sandboxID]);
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/resume`, { body: {} })).status).toBe(201);
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  expect(agent.live.size).toBe(0);
});

test("a request reaches a sandbox through the node's proxy, which shows the node's certificate", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster));
  const backend = createServer((_request, response) => response.end("from inside"));
  await new Promise<void>((resolve) => void backend.listen(0, "127.0.0.1", () => resolve()));
  onTestFinished(() => void backend.close());
  const { port } = backend.address() as import("node:net").AddressInfo;
  const { sandboxID } = (await create()).body as { sandboxID: string };
  const answer = await fetch(cluster.edgeUrl, {
    headers: { "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": String(port) },
  });
  expect([answer.status, await answer.text()]).toEqual([200, "from inside"]);
  expect(agent.replies.at(-1)?.unreached).toBeUndefined();
});

test("a node has a lease while another one could run its sandboxes, and hears which of them have no record", async () => {
  const first = await startMember(cluster, await joinCluster(cluster));
  expect((await first.beat()).lease).toBeUndefined();
  const second = await startMember(cluster, await joinCluster(cluster));
  await create();
  for (const agent of [first, second]) {
    expect((await agent.beat()).lease).toEqual({ forMs: 30_000, withoutRecord: [] });
  }
  const [known] = [...first.live.values(), ...second.live.values()];
  if (known === undefined) throw new Error("no sandbox runs");
  const executionId = newExecutionId();
  first.live.set(executionId, { ...known, executionId, body: { ...known.body, sandboxId: "iorphan" } });
  expect((await first.beat()).lease?.withoutRecord).toEqual([executionId]);
});

test("the content of a volume is written and read through the node's certificate", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster));
  const made = await cluster.ask("POST", "/volumes", { body: { name: "far", sizeMB: 64 } });
  expect(made.status, made.text).toBe(201);
  const { volumeID, token } = made.body as { volumeID: string; token: string };
  const at = `${cluster.url}/volumecontent/${volumeID}/file?path=/note`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
  const put = await fetch(at, { method: "PUT", headers, body: "kept far away" });
  expect(put.status, await put.clone().text()).toBe(201);
  const got = await fetch(at, { headers: { authorization: `Bearer ${token}` } });
  expect(await got.text()).toBe("kept far away");
  expect(agent.url).toMatch(/^https:/);
});

test("files of templates and values of secrets come over the meeting, and a node without a certificate gets neither", async () => {
  const { config, peering } = await joinCluster(cluster);
  const teardown = new Teardown(log);
  onTestFinished(() => teardown.run());
  const orchestrators = createOrchestrators(nodesUrlOf(cluster), log);
  const files = templateFiles({ orchestrators, peering }, teardown);
  // This node builds nothing, so the orchestrator, which has answered, has no files for it.
  await expect(files("t1", "a".repeat(64), new AbortController().signal)).rejects.toThrow("were not uploaded");
  const values = startValues({ orchestrators, peering, now: Date.now, log }, teardown);
  const executionId = newExecutionId();
  const placeholder = "e2b.secrets.KEY";
  const rules = [{ host: "api.test", headers: { "x-key": `\${${placeholder}}` } }];
  values.begin(executionId, { ...OPEN, rules });
  const { answer } = await values.resolve({ executionId, placeholder, host: "api.test" });
  // The orchestrator has answered here too: the execution is none of this node's.
  expect(answer).toEqual({ problem: `node '${config.nodeId}' does not run the execution '${executionId}'` });
  const bare = templateFiles({ orchestrators, peering: { ...peering, meeting: undefined } }, teardown);
  await expect(bare("t1", "a".repeat(64), new AbortController().signal)).rejects.toThrow(
    "the orchestrator did not send the files",
  );
});
