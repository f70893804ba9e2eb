/** Calls a node back at both of its addresses, as its sandboxes will need it: what it reports does not say that it can be reached. */

import { Agent, request } from "undici";
import { type AgentRun, identityApi } from "../../shared/agent-api/joining/identity-shapes.ts";
import type { NodeFacts } from "../../shared/agent-api/routes.ts";
import { connect } from "../../shared/http/client.ts";
import { connectorFor } from "../../shared/http/connections/meeting-connector.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import { NODE_TOKEN_HEADER, PROXY_ERROR_HEADER } from "../../shared/proxy/hop-contract.ts";
import { reachFailure } from "../../shared/tls/failures.ts";
import type { Meeting } from "../../shared/tls/peers.ts";

/** Both calls run at once, and the node waits five seconds for the answer to its report. */
const LIMIT_MS = 3_000;

export interface CallBackDeps {
  readonly token: string;
  readonly meeting: Meeting | undefined;
}

export interface CalledBack {
  /** Undefined: the agent API was not reached. */
  readonly run: AgentRun | undefined;
  /** One for each address that does not answer as it has to. */
  readonly unreached: readonly Finding[];
}

export async function callBack(
  facts: Pick<NodeFacts, "nodeId" | "apiUrl" | "proxyUrl">,
  deps: CallBackDeps,
): Promise<CalledBack> {
  const [api, proxy] = await Promise.allSettled([
    runAt(facts.apiUrl, facts.nodeId, deps),
    tryProxy(facts.proxyUrl, deps),
  ]);
  const unreached = [
    ...(api.status === "rejected" ? [finding("api", facts.apiUrl, api.reason)] : []),
    ...(proxy.status === "rejected" ? [finding("proxy", facts.proxyUrl, proxy.reason)] : []),
  ];
  return { run: api.status === "fulfilled" ? api.value : undefined, unreached };
}

/** @throws {AppError} when no agent that takes the token answers */
export async function runAt(url: string, nodeId: string, { token, meeting }: CallBackDeps): Promise<AgentRun> {
  const headers = { authorization: `Bearer ${token}` };
  const connection = connect(identityApi, { url, name: `node ${nodeId}`, headers, meeting, connectMs: LIMIT_MS });
  try {
    return await connection.call.identity({}, { timeoutMs: LIMIT_MS });
  } finally {
    await connection.close();
  }
}

/** A request for no sandbox: the proxy says that there is none, which only a proxy that takes the token does. */
async function tryProxy(url: string, { token, meeting }: CallBackDeps): Promise<void> {
  const dispatcher = new Agent({
    connect: meeting === undefined ? { timeout: LIMIT_MS } : connectorFor(meeting, LIMIT_MS),
  });
  try {
    const { statusCode, headers, body } = await request(url, {
      dispatcher,
      headers: { [NODE_TOKEN_HEADER]: token },
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await body.dump();
    const said = headers[PROXY_ERROR_HEADER];
    if (said === "unauthorized") throw new AppError("node_unreachable", "it does not take the orchestrator's token");
    if (said === undefined)
      throw new AppError("node_unreachable", `no node proxy answers there (status ${statusCode})`);
  } finally {
    await dispatcher.destroy();
  }
}

const WHAT = {
  api: { name: "agent API", settings: "SVC_AGENT_HOST, SVC_AGENT_PORT and SVC_AGENT_URL" },
  proxy: { name: "node proxy", settings: "SVC_PROXY_HOST, SVC_PROXY_PORT and SVC_PROXY_URL" },
} as const;

function finding(kind: keyof typeof WHAT, url: string, error: unknown): Finding {
  const { name, settings } = WHAT[kind];
  const why = reachFailure(error, url) ?? (isTimeout(error) ? SILENT : words(error));
  return {
    id: `node.${kind}`,
    problem: `the orchestrator does not reach the ${name} of this node at ${url}, so the node gets no sandbox`,
    evidence: why,
    wayOut: `compare the address with the node's settings ${settings}, and let the orchestrator's machine in at this port in every firewall between; it is tried again at each report`,
  };
}

const SILENT = `it takes connections and gives no answer within ${LIMIT_MS / 1_000} s`;

function isTimeout(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth++) {
    if (cause.name === "TimeoutError") return true;
  }
  return false;
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
