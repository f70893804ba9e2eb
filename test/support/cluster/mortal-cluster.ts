/** An orchestrator that a test kills, with a fake agent as its node and a project of the test. */

import { setTimeout as delay } from "node:timers/promises";
import { nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { startFakeAgent } from "../fakes/fake-agent.ts";
import type { FakeAgent } from "../fakes/fake-agent-shapes.ts";
import type { DatabaseChoice } from "../store/databases.ts";
import { ADMIN_TOKEN, NODE_KEY } from "./cluster.ts";
import { type MortalOrchestrator, startMortalOrchestrator } from "./mortal-orchestrator.ts";

export const AS_ADMIN = { "x-admin-token": ADMIN_TOKEN };
export const AS_NODE = { authorization: `Bearer ${nodeToken(NODE_KEY, "n1", "from node")}` };

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly body: unknown;
}

export interface MortalCluster {
  readonly orchestrator: MortalOrchestrator;
  readonly agent: FakeAgent;
  /** Asks once, with the key of the test's project unless `headers` are given. Rejects when the orchestrator dies meanwhile. */
  ask(method: string, path: string, body?: object, headers?: Readonly<Record<string, string>>): Promise<Answered>;
  /** Asks until the orchestrator answers. @throws {RangeError} when it refuses. */
  insist<T>(method: string, path: string, body: object): Promise<T>;
  stop(): Promise<void>;
}

export async function startMortalCluster(
  settings: Readonly<Record<string, string>>,
  choice: Pick<DatabaseChoice, "server"> = {},
): Promise<MortalCluster> {
  const orchestrator = await startMortalOrchestrator(
    { SVC_RATE_LIMIT_WRITE_PER_SECOND: "100000", ...settings },
    choice,
  );
  const agent = await startFakeAgent({
    orchestratorUrl: orchestrator.url,
    nodeId: "n1",
    nodeToken: nodeToken(NODE_KEY, "n1", "from node"),
    orchestratorToken: nodeToken(NODE_KEY, "n1", "to node"),
  });
  let own: Readonly<Record<string, string>> = {};

  const ask: MortalCluster["ask"] = async (method, path, body, headers = own) => {
    const response = await fetch(`${orchestrator.url}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
  };

  const { teamID } = (await ask("POST", "/admin/projects", { name: "killed" }, AS_ADMIN)).body as { teamID: string };
  const made = await ask("POST", `/admin/teams/${teamID}/api-keys`, { name: "k" }, AS_ADMIN);
  own = { "x-api-key": (made.body as { key: string }).key };

  return {
    orchestrator,
    agent,
    ask,
    async insist<T>(method: string, path: string, body: object) {
      for (;;) {
        const answer = await ask(method, path, body).catch(() => undefined);
        if (answer !== undefined && answer.status < 300) return answer.body as T;
        if (answer !== undefined && answer.status < 500)
          throw new RangeError(`${method} ${path}: ${answer.status} ${answer.text}`);
        await delay(20);
      }
    },
    async stop() {
      await agent.stop();
      await orchestrator.stop();
    },
  };
}
