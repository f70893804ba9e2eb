/**
 * An agent beside an orchestrator that is one version older or newer. An order with a field that the agent does not know is refused
 * before anything of it is done: it may be a rule. A route that it does not know is 404. An answer to a report gives no rules that an
 * agent has to know: what it does not know of it, it leaves.
 */

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { applyReply } from "../../../../agent/api/apply-reply.ts";
import { nodeApi } from "../../../../shared/agent-api/routes.ts";
import { connect } from "../../../../shared/http/client.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { type AgentInMemory, agentInMemory, problemsOnMachine } from "../../../support/agent/agent-in-memory.ts";
import { startRequest } from "../../../support/fakes/agent-parts.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";

const log = createLog({ component: "test", level: "silent" });
const expectNoProblems = (agent: AgentInMemory) => expect.poll(() => problemsOnMachine(agent)).toEqual([]);

async function answer(response: Response) {
  return { status: response.status, body: (await response.json()) as { error_code?: string; message: string } };
}

test.each([
  ["of the request", (body: object) => ({ ...body, later: true }), "later"],
  ["of its policy", (body: { egress: object }) => ({ ...body, egress: { ...body.egress, later: [] } }), "later"],
])(
  "a newer orchestrator's start with an unknown field %s is refused by its name, and begins nothing",
  async (_of, change, name) => {
    const agent = await agentInMemory();
    const path = `/v1/executions/${randomUUID()}`;
    const refused = await answer(await agent.ask("PUT", path, change(startRequest())));
    expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining(name) as string } });
    expect(agent.engine.steps).toEqual([]);
    // Without it the same request is an order as any other.
    expect((await agent.ask("PUT", path, startRequest())).status).toBe(200);
    await expectNoProblems(agent);
  },
);

test.each([
  ["POST", `/v1/executions/${randomUUID()}/later`],
  ["PUT", "/v2/executions"],
  ["PATCH", "/v1/doctor"],
])("a newer orchestrator's route %s %s is 404, in the form of every error", async (method, path) => {
  const agent = await agentInMemory();
  expect(await answer(await agent.ask(method, path, {}))).toMatchObject({
    status: 404,
    body: { error_code: "not_found" },
  });
  await expectNoProblems(agent);
});

test("an older orchestrator, which knows neither records nor the names of stores, starts, pauses, resumes and stops a sandbox", async () => {
  const agent = await agentInMemory();
  const { call, parts } = agent;
  const body = startRequest();
  const params = { executionId: randomUUID() };
  await call.startExecution({ params, body });
  const { snapshotId } = await call.pauseExecution({ params, body: { snapshotId: randomUUID(), memory: true } });
  const again = { executionId: randomUUID() };
  await call.startExecution({ params: again, body: { ...body, origin: { is: "paused", snapshotId, memory: true } } });
  await expectNoProblems(agent);
  await call.stopExecution({ params: again });
  expect(parts.sandboxes.running()).toEqual([]);
  await expectNoProblems(agent);
});

/** An orchestrator that answers each report with this. */
async function orchestratorAnswering(reply: object) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = connect(nodeApi, { url, name: "orchestrator" });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  const node = {
    nodeId: "n1",
    url,
    serviceInstanceId: "run",
    address: "127.0.0.1",
    options: {},
    live: [],
    snapshots: [],
  };
  return () => connection.call.heartbeat({ body: fakeHeartbeat(node) });
}

test.each([
  ["an older orchestrator, with nothing that came later", {}],
  ["a newer orchestrator, with what this agent does not know", { later: { rule: 1 }, drains: ["e9"] }],
])("the answer of %s is carried out as far as it is known", async (_of, more) => {
  const agent = await agentInMemory();
  const { parts } = agent;
  const [ends, stays] = [randomUUID(), randomUUID()];
  for (const executionId of [ends, stays])
    await agent.call.startExecution({ params: { executionId }, body: startRequest() });
  const endAt = Date.now() + 600_000;
  const report = await orchestratorAnswering({
    pools: [],
    stop: [ends],
    endAt: { [stays]: endAt },
    deleteSnapshots: [],
    ...more,
  });
  applyReply(await report(), {
    ...parts,
    holding: parts.stored.holding,
    uploads: parts.stored.uploads,
    imageUploads: parts.stored.imageUploads,
    blobs: { everyNodeReadsZstd: () => undefined },
    log,
  });
  await expect.poll(() => parts.sandboxes.running()).toMatchObject([{ executionId: stays, endAt }]);
  await expectNoProblems(agent);
});
