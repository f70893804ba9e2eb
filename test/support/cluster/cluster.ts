/** A whole platform in one process: the real orchestrator on a temporary database, and fake agents. */

import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeProxy } from "../../../agent/proxy/node-proxy.ts";
import { type Orchestrator, startOrchestrator } from "../../../orchestrator/app.ts";
import { OrchestratorConfig } from "../../../orchestrator/config.ts";
import { nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog, LOG_LEVELS, type Log, type LogLevel } from "../../../shared/program/log.ts";
import { forgetKeptConnections } from "../connections/kept-connections.ts";
import { type ApartEdge, startApartEdge } from "../edges/apart-edge.ts";
import { startFakeAgent } from "../fakes/fake-agent.ts";
import type { FakeAgent, FakeAgentOptions } from "../fakes/fake-agent-shapes.ts";
import { freePort } from "../peers/listening.ts";
import { newMigratedDatabase, type TestDatabase } from "../store/databases.ts";
import { startAgentProxy } from "./agent-proxy.ts";

export const ADMIN_TOKEN = "test-admin-token-0001";
export const NODE_KEY = "test-node-key-0001";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined when there is none or it is no JSON. */
  readonly body: unknown;
}

export interface Ask {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface Cluster {
  readonly url: string;
  readonly edgeUrl: string;
  /** For nodes on other machines; undefined without `nodesPort` in the settings. */
  readonly nodesUrl: string | undefined;
  /** Undefined: the settings switch the console off. */
  readonly consoleUrl: string | undefined;
  readonly agents: readonly FakeAgent[];
  /** The first agent. */
  readonly agent: FakeAgent;
  readonly key: string;
  readonly teamId: string;
  readonly projectId: string;
  /** Sends the cluster's API key unless the options give another one. */
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** Adds another project with a key. */
  addProject(name: string): Promise<{ key: string; teamId: string; projectId: string; slug: string }>;
  /**
   * Stops the orchestrator, runs `between`, and starts the orchestrator again on the same file and ports with other
   * settings.
   */
  restart(config?: Partial<OrchestratorConfig>, between?: () => void | Promise<void>): Promise<void>;
  readonly database: Pick<TestDatabase, "query" | "stored">;
  /** The folder with everything that the orchestrator writes, except a database on a server. */
  readonly folder: string;
  /** Uploaded files of COPY steps, with one folder for each template. */
  readonly filesFolder: string;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Uses SQLite even where the tests run on PostgreSQL, for behaviour that only the file has. */
  readonly onSqlite?: boolean;
  readonly agents?: number;
  /**
   * Whether an edge program carries the traffic, in this process, in place of the orchestrator. Default: what SVC_TEST_EDGE says
   * (`apart` or nothing), so that every test can run with both.
   */
  readonly edge?: "within" | "apart";
  /** Settings, by property name. */
  readonly config?: Partial<OrchestratorConfig>;
  readonly agent?: Partial<FakeAgentOptions>;
  readonly logLevel?: LogLevel;
  /** A log to use in place of a silent one. */
  readonly log?: Log;
  /** The clock of the orchestrator's machine; absent: the right one. */
  readonly now?: () => number;
  /** An empty folder of the test for everything that the orchestrator writes, which the test removes itself. */
  readonly folder?: string;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "svc-cluster-")));
  const database = await newMigratedDatabase({ folder, ...(options.onSqlite === true ? { server: null } : {}) });
  const log = options.log ?? createLog({ component: "test", level: options.logLevel ?? logLevel() });
  const defaults = readConfig(OrchestratorConfig, {
    SVC_DATABASE: database.place.startsWith("/") ? database.place : join(folder, "svc.db"),
    ...(database.place.startsWith("postgres") ? { DATABASE_URL: database.place } : {}),
    SVC_ADMIN_TOKEN: ADMIN_TOKEN,
    SVC_NODE_KEY: NODE_KEY,
    SVC_SEED: "test-seed-0000000001",
    SVC_ENCRYPTION_KEY: "test-encryption-key-1",
    SVC_SECRETS_KEY_FILE: await newKeyFile(folder),
    SVC_API_PORT: "0",
    SVC_EDGE_PORT: "0",
    SVC_EXPIRY_EVERY_MS: "20",
    SVC_RECONCILE_EVERY_MS: "100",
  });
  let config: OrchestratorConfig = { ...defaults, ...options.config };
  const isApart = (options.edge ?? process.env["SVC_TEST_EDGE"]) === "apart";
  // The orchestrator names the port to clients, so it must know it.
  if (isApart) config = { ...config, edge: "off", edgePort: await freePort() };
  const deps = { log, now: options.now ?? Date.now, random: Math.random, machineId: "fake-machine" };
  let orchestrator: Orchestrator = await startOrchestrator(config, deps);
  config = { ...config, apiPort: portOf(orchestrator.url) };
  const apart: ApartEdge | undefined = isApart
    ? await startApartEdge({ orchestratorUrl: orchestrator.url, nodeKey: NODE_KEY, log, edgePort: config.edgePort })
    : undefined;
  const edgeUrl = () => apart?.url ?? orchestrator.edgeUrl ?? "";
  if (edgeUrl() !== "") config = { ...config, edgePort: portOf(edgeUrl()) };

  const agents: FakeAgent[] = [];
  const proxies: NodeProxy[] = [];
  const isShared = database.place.startsWith("postgres");
  for (let index = 1; index <= (options.agents ?? 1); index++) {
    const nodeId = `n${index}`;
    const tokens = {
      nodeToken: nodeToken(NODE_KEY, nodeId, "from node"),
      orchestratorToken: nodeToken(NODE_KEY, nodeId, "to node"),
    };
    const given = { orchestratorUrl: orchestrator.url, nodeId, ...tokens };
    const { agent, proxy } = await startNode({ ...given, ...options.agent }, isShared);
    agents.push(agent);
    if (proxy !== undefined) proxies.push(proxy);
  }

  async function ask(method: string, path: string, { key, headers, body }: Ask = {}): Promise<Answer> {
    const response = await fetch(`${orchestrator.url}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { "x-api-key": key ?? first.key }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parse(text) };
  }

  async function addProject(name: string) {
    const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
    const project = (await ask("POST", "/admin/projects", { ...admin, body: { name } })).body as {
      teamID: string;
      projectID: string;
      slug: string;
    };
    const path = `/admin/teams/${project.teamID}/api-keys`;
    const { key } = (await ask("POST", path, { ...admin, body: { name: "test" } })).body as { key: string };
    return { key, teamId: project.teamID, projectId: project.projectID, slug: project.slug };
  }

  let first = { key: "", teamId: "", projectId: "", slug: "" };
  first = await addProject("Test Project");
  const [agent] = agents;

  return {
    get url() {
      return orchestrator.url;
    },
    get edgeUrl() {
      return edgeUrl();
    },
    get nodesUrl() {
      return orchestrator.nodesUrl;
    },
    get consoleUrl() {
      return orchestrator.consoleUrl;
    },
    agents,
    get agent() {
      if (agent === undefined) throw new Error("this cluster has no agent");
      return agent;
    },
    key: first.key,
    teamId: first.teamId,
    projectId: first.projectId,
    ask,
    addProject,
    database,
    folder,
    filesFolder: join(folder, "files"),
    async restart(changed = {}, between = () => undefined) {
      forgetKeptConnections();
      await orchestrator.stop();
      await between();
      config = { ...config, ...changed };
      orchestrator = await startOrchestrator(config, deps);
    },
    async stop() {
      forgetKeptConnections();
      await apart?.stop();
      await Promise.all(agents.map((each) => each.stop()));
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await orchestrator.stop();
      await database.drop();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @param isShared several orchestrators may use the database: then every request goes through a node's proxy */
async function startNode(options: FakeAgentOptions, isShared: boolean) {
  const running: { agent?: FakeAgent } = {};
  const proxy =
    isShared && options.proxyUrl === undefined
      ? await startAgentProxy(
          { nodeTokens: () => [options.orchestratorToken], address: options.address },
          () => running.agent,
        )
      : undefined;
  const agent = await startFakeAgent({ ...options, ...(proxy === undefined ? {} : { proxyUrl: proxy.url }) });
  running.agent = agent;
  return { agent, proxy };
}

/** Makes the file with the key of secrets. */
async function newKeyFile(folder: string): Promise<string> {
  const path = join(folder, "secrets.key");
  await writeFile(path, `first ${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  return path;
}

/** The level of the cluster's log: SVC_TEST_LOG=error shows why a request failed that should not have. */
function logLevel(): LogLevel {
  const level = process.env["SVC_TEST_LOG"];
  return LOG_LEVELS.find((known) => known === level) ?? "silent";
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
