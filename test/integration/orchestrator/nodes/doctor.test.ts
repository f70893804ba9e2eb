/** The doctor's report of a node, asked for by an operator: from the node, within a limit, and for nobody else. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createDoctorHandlers } from "../../../../orchestrator/api/node-doctor.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type MachineReport, REPORT_TEXT } from "../../../../shared/program/finding.ts";
import { ADMIN_TOKEN, type Cluster, NODE_KEY, startCluster } from "../../../support/cluster/cluster.ts";
import { admin } from "../../../support/cluster/members.ts";
import { startFakeAgent } from "../../../support/fakes/fake-agent.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { newBrowser } from "../console/browser.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 2 });
});
afterAll(() => cluster.stop());

const HOSTILE = "<img src=x onerror=alert(1)>\u202e\u0000";
const REPORT: MachineReport = {
  ok: false,
  at: "2026-11-29T17:00:00.000Z",
  instance: "",
  checks: [
    {
      id: "ports.taken",
      section: "ports",
      status: "failed",
      problem: "another program listens on a port of the platform",
      evidence: HOSTILE,
      wayOut: "stop that program",
    },
  ],
};

/** The node gives this answer for the time of the test. */
function answering(answer: FakeAgent["onExamine"]): string {
  const before = cluster.agent.onExamine;
  cluster.agent.onExamine = answer;
  onTestFinished(() => {
    cluster.agent.onExamine = before;
  });
  return `/nodes/${cluster.agent.nodeId}/doctor`;
}

test("an operator gets the report of the node that was asked, as the node has it", async () => {
  const answer = await cluster.ask(
    "GET",
    answering(() => REPORT),
    admin,
  );
  expect([answer.status, answer.body]).toEqual([200, REPORT]);
});

test("the console shows it to an operator's session, and refuses one of a key", async () => {
  const path = `/console/api${answering(() => REPORT)}`;
  const operator = newBrowser(cluster);
  await operator.ask("POST", "/console/login", { headers: { "x-admin-token": ADMIN_TOKEN } }).then((answer) => {
    operator.cookie = answer.headers.getSetCookie().at(-1)?.split(";")[0];
  });
  const shown = await operator.ask("GET", path);
  expect([shown.status, shown.body]).toEqual([200, REPORT]);
  const elsewhere = await operator.ask("GET", path, { headers: { "sec-fetch-site": "cross-site" } });
  expect(elsewhere.status).toBe(403);
  const member = newBrowser(cluster);
  await member.logIn(cluster.key);
  const refused = await member.ask("GET", path);
  // A 401 would end the member's session on the page.
  expect(refused.status).toBe(403);
  expect(refused.text).not.toContain("ports.taken");
});

test("neither an API key nor nobody gets it, and no node is asked", async () => {
  let asked = 0;
  const path = answering(() => {
    asked += 1;
    return REPORT;
  });
  expect((await cluster.ask("GET", path)).status).toBe(401);
  expect((await cluster.ask("GET", path, { key: null })).status).toBe(401);
  expect(asked).toBe(0);
});

test("a node that is not known is 404", async () => {
  const answer = await cluster.ask("GET", "/nodes/no-such-node/doctor", admin);
  expect([answer.status, answer.body]).toMatchObject([404, { message: "node 'no-such-node' not found" }]);
});

test("a node without a report says why", async () => {
  const path = answering(() => {
    throw new AppError("unavailable", "node 'n1' has no report of the doctor: it ended without one");
  });
  const answer = await cluster.ask("GET", path, admin);
  expect([answer.status, answer.body]).toMatchObject([
    503,
    { error_code: "unavailable", message: expect.stringContaining("it ended without one") as string },
  ]);
});

test.each(["forbidden", "unauthorized", "payload_too_large", "unavailable", "node_unreachable"] as const)(
  "a node that answers %s at length is cut short, and its code is not the operator's",
  async (code) => {
    const path = answering(() => {
      throw new AppError(code, "x".repeat(1_000_000));
    });
    const answer = await cluster.ask("GET", path, admin);
    const error_code = code === "node_unreachable" ? code : "unavailable";
    expect([answer.status, answer.body]).toMatchObject([503, { error_code }]);
    expect(answer.text.length).toBeLessThan(3 * REPORT_TEXT);
  },
);

test("fields that an agent of a later version has beside the known ones are left out", async () => {
  const more = { later: "x".repeat(1_000_000) };
  const later = { ...REPORT, ...more, checks: REPORT.checks.map((each) => ({ ...each, ...more })) };
  const answer = await cluster.ask(
    "GET",
    answering(() => later),
    admin,
  );
  expect([answer.status, answer.body]).toEqual([200, REPORT]);
});

test("a node whose earlier agent has no such route is named with its version", async () => {
  const path = answering(() => {
    throw new AppError("not_found", "no such route");
  });
  const answer = await cluster.ask("GET", path, admin);
  expect([answer.status, answer.text]).toEqual([503, expect.stringMatching(/is of version \S+, which has no report/)]);
});

test("a version without end, which a node reports, does not come back at length", async () => {
  const nodeId = "n-long";
  const agent = await startFakeAgent({
    orchestratorUrl: cluster.url,
    nodeId,
    nodeToken: nodeToken(NODE_KEY, nodeId, "from node"),
    orchestratorToken: nodeToken(NODE_KEY, nodeId, "to node"),
    facts: { version: "x".repeat(100_000) },
  });
  onTestFinished(() => agent.stop());
  agent.onExamine = () => {
    throw new AppError("not_found", "no such route");
  };
  const answer = await cluster.ask("GET", `/nodes/${agent.nodeId}/doctor`, admin);
  expect([answer.status, answer.text]).toEqual([503, expect.stringMatching(/is of version x+, which has no report/)]);
  expect(answer.text.length).toBeLessThan(3 * REPORT_TEXT);
});

test.each([
  ["another form", { ok: true }],
  ["a text without end", { ...REPORT, checks: [{ ...REPORT.checks[0], evidence: "x".repeat(1_000_000) }] }],
  ["a time without end", { ...REPORT, at: `2026-11-29T17:00:00.${"0".repeat(1_000_000)}Z` }],
])("a node that answers with %s is not passed on", async (_what, given) => {
  const answer = await cluster.ask(
    "GET",
    answering(() => given as MachineReport),
    admin,
  );
  expect([answer.status, answer.body]).toMatchObject([
    503,
    { message: `node '${cluster.agent.nodeId}' answered with no report` },
  ]);
});

test("a node that does not answer is named", async () => {
  const [, silent] = cluster.agents;
  if (silent === undefined) throw new Error("two agents");
  await silent.stop();
  const answer = await cluster.ask("GET", `/nodes/${silent.nodeId}/doctor`, admin);
  expect([answer.status, answer.body]).toMatchObject([
    503,
    { error_code: "node_unreachable", message: `node ${silent.nodeId} did not answer GET /v1/doctor` },
  ]);
});

test("a node gets its limit and the end of the operator's request, so that nobody waits for ever", async () => {
  const given: unknown[] = [];
  const nodes = {
    get: () => ({ facts: { version: "1" } }),
    agent: () => ({
      examine(_input: unknown, options: unknown) {
        given.push(options);
        return Promise.resolve(REPORT);
      },
    }),
  } as unknown as Nodes;
  const { signal } = new AbortController();
  const handlers = createDoctorHandlers({ nodes });
  const context = { signal } as Parameters<typeof handlers.examineNode>[1];
  await handlers.examineNode({ params: { nodeID: "n1" } } as Parameters<typeof handlers.examineNode>[0], context);
  expect(given).toEqual([{ timeoutMs: 80_000, signal }]);
});
