/** Two orchestrators, each a process of its own, on one PostgreSQL database, with fake agents that know both. */

import { nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { startFakeAgent } from "../fakes/fake-agent.ts";
import type { FakeAgent, FakeAgentOptions } from "../fakes/fake-agent-shapes.ts";
import { startPostgres } from "../postgres/cluster.ts";
import type { TestDatabase } from "../store/databases.ts";
import { NODE_KEY } from "./cluster.ts";
import { AS_ADMIN } from "./mortal-cluster.ts";
import { type MortalOrchestrator, startMortalOrchestrator } from "./mortal-orchestrator.ts";

interface Asked {
  readonly status: number;
  readonly text: string;
  readonly body: unknown;
}

export interface Pair {
  readonly orchestrators: readonly [MortalOrchestrator, MortalOrchestrator];
  readonly agents: readonly FakeAgent[];
  /** Asks an orchestrator once. Rejects when it is away, or dies meanwhile. */
  ask(by: 0 | 1, method: string, path: string, body?: object): Promise<Asked>;
  /** As `ask`, as an operator. */
  admin(by: 0 | 1, method: string, path: string, body?: object): Promise<Asked>;
  /** Starts one more orchestrator on the database, with other settings. */
  startThird(settings: Readonly<Record<string, string>>): Promise<MortalOrchestrator>;
  stop(): Promise<void>;
}

interface PairOptions {
  readonly agents?: number;
  readonly agent?: Pick<FakeAgentOptions, "facts">;
  readonly settings?: Readonly<Record<string, string>>;
  /** A database of the test's own, which the test removes. */
  readonly database?: TestDatabase;
}

/**
 * Short times, so that what a dead orchestrator owned is taken over while a test waits; longer than a busy machine usually stands
 * still.
 */
const SETTINGS = {
  SVC_ORCHESTRATOR_LEASE_MS: "8000",
  SVC_RECONCILE_EVERY_MS: "200",
  SVC_EXPIRY_EVERY_MS: "100",
  SVC_RATE_LIMIT_WRITE_PER_SECOND: "100000",
};

export async function startPair({
  agents: count = 2,
  agent: shown = {},
  settings = {},
  database,
}: PairOptions = {}): Promise<Pair> {
  const shared = process.env["SVC_TEST_POSTGRES"];
  const server = shared === undefined && database === undefined ? await startPostgres() : undefined;
  const given = { ...SETTINGS, ...settings };
  const choice = database === undefined ? { server: server?.url ?? shared ?? null } : { database };
  const first = await startMortalOrchestrator(given, choice);
  const second = await startMortalOrchestrator(given, { beside: first });
  const orchestrators = [first, second] as const;

  const agents: FakeAgent[] = [];
  for (let index = 1; index <= count; index++) {
    const nodeId = `n${index}`;
    // They begin with another one each.
    const urls = orchestrators.map(({ url }) => url);
    const orchestratorUrl = (index % 2 === 0 ? urls.toReversed() : urls).join(",");
    const tokens = {
      nodeToken: nodeToken(NODE_KEY, nodeId, "from node"),
      orchestratorToken: nodeToken(NODE_KEY, nodeId, "to node"),
    };
    agents.push(await startFakeAgent({ orchestratorUrl, nodeId, ...tokens, heartbeatMs: 500, ...shown }));
  }

  async function send(by: 0 | 1, method: string, path: string, more: { headers: object; body?: object | undefined }) {
    const { headers, body } = more;
    const response = await fetch(`${orchestrators[by].url}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    return { status: response.status, text, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
  }

  const admin: Pair["admin"] = (by, method, path, body) => send(by, method, path, { headers: AS_ADMIN, body });
  const { teamID } = (await admin(0, "POST", "/admin/projects", { name: "pair" })).body as { teamID: string };
  const made = await admin(1, "POST", `/admin/teams/${teamID}/api-keys`, { name: "k" });
  const own = { "x-api-key": (made.body as { key: string }).key };

  return {
    orchestrators,
    agents,
    ask: (by, method, path, body) => send(by, method, path, { headers: own, body }),
    admin,
    startThird: (more) => startMortalOrchestrator({ ...given, ...more }, { beside: first }),
    async stop() {
      await Promise.all(agents.map((agent) => agent.stop()));
      await second.stop();
      await first.stop();
      await server?.stop();
    },
  };
}
