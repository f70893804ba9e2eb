/**
 * An agent of the test's own, as a process on the real Docker daemon, and a stand-in for the orchestrator that receives its
 * reports.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  agentApi,
  type ExitReport,
  type Heartbeat,
  nodeApi,
  type PoolTarget,
  type Started,
  type StartRequest,
} from "../../../shared/agent-api/routes.ts";
import { type Connection, connect } from "../../../shared/http/client.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import { OPEN } from "../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../shared/program/log.ts";
import { freePort } from "../peers/listening.ts";
import { until } from "../runner/until.ts";
import { killFrozen } from "../sandbox/frozen-container.ts";
import { builtAgent } from "./built-agent.ts";
import { type Identity, removeAll, unmountBelow } from "./remains.ts";

const run = promisify(execFile);

/** One digit that keeps several checkouts apart which test on one machine at the same time. */
const OWN = process.env["SVC_TEST_AGENT"] ?? "";
// Beside the subnets that instances have (scripts/lib/instance.sh): 10.213 to 10.243.
const NUMBERS = OWN === "" ? "10.212" : `10.${244 + Number(OWN)}`;
const SUBNET = `${NUMBERS}.0.0/16`;
export const NETWORK = `svca${OWN}`;
export const GATEWAY = `${NUMBERS}.0.1`;
export const BASE = { templateId: "base", buildId: "base-build", image: "svc/base:latest" };
export const RESOURCES = { cpuCount: 1, memoryMB: 256, diskSizeMB: 1024 };
export const RUN_DIR = `/run/svc-agenttest${OWN}`;
export const NODE_ID = `agent-test${OWN}`;
const NODE_TOKEN = "agent-test-node-token";
export const ORCHESTRATOR_TOKEN = "agent-test-orchestrator-token";

/** Settings of a second agent beside the first, on the same machine. */
export const BESIDE = {
  SVC_NODE_ID: `${NODE_ID}-beside`,
  SVC_NETWORK_NAME: `svcb${OWN}`,
  SVC_SUBNET: `10.${OWN === "" ? 211 : 201 + Number(OWN)}.0.0/16`,
  SVC_RUN_DIR: `${RUN_DIR}-beside`,
};

export interface RealAgent {
  readonly call: Connection<typeof agentApi>["call"];
  readonly url: string;
  readonly exits: ExitReport[];
  readonly heartbeats: Heartbeat[];
  /** Archives of COPY steps by hash; the stand-in serves them as the orchestrator would. */
  readonly files: Map<string, Buffer>;
  /** Sets the pools with which the stand-in answers the next heartbeat. */
  setPools(pools: PoolTarget[]): void;
  /** Names the platform's database to the agent from its next report on, which an agent with a blob store needs to know. */
  setPlatform(storeId: string): void;
  /** Decides whether the orchestrator answers or is away. */
  setOrchestrator(answers: boolean): void;
  start(more?: Partial<StartRequest>): Promise<Started>;
  startAs(executionId: string, more?: Partial<StartRequest>): Promise<Started>;
  stop(executionId: string): Promise<void>;
  /** Kills all containers, each of which is frozen, as memory pressure would. */
  drop(): Promise<void>;
  /** Kills the agent with SIGKILL, so that it cannot tidy up. */
  crash(): Promise<void>;
  launch(): Promise<void>;
  /** The log of the last start, until the agent listens. */
  said(): string;
  readonly pid: number;
  /** The directory of the agent's snapshots. */
  readonly snapshots: string;
  /** The directory of the sandboxes' disks. */
  readonly disks: string;
  close(): Promise<void>;
}

/** @param main another main file in place of the agent's own */
export async function realAgent(settings: Readonly<Record<string, string>> = {}, main?: URL): Promise<RealAgent> {
  const directory = await mkdtemp(join(tmpdir(), "svc-agent-"));
  const own: Identity = {
    nodeId: settings["SVC_NODE_ID"] ?? NODE_ID,
    network: settings["SVC_NETWORK_NAME"] ?? NETWORK,
    subnet: settings["SVC_SUBNET"] ?? SUBNET,
    runDir: settings["SVC_RUN_DIR"] ?? RUN_DIR,
  };
  const exits: ExitReport[] = [];
  const heartbeats: Heartbeat[] = [];
  const files = new Map<string, Buffer>();
  const state = {
    pools: [] as PoolTarget[],
    platform: undefined as string | undefined,
    away: false,
    child: undefined as ChildProcess | undefined,
    said: "",
  };
  const opening = randomUUID();

  const orchestrator = createServer(createLog({ component: "test", level: "silent" }));
  const whileThere = () => {
    if (state.away) throw new Error("away");
  };
  serve(
    orchestrator,
    nodeApi,
    {
      heartbeat({ body }) {
        whileThere();
        heartbeats.push(body);
        exits.push(...body.exits);
        const { platform: storeId } = state;
        const knows = body.executions.length + body.snapshots.length;
        const store = storeId === undefined ? {} : { store: { storeId, opening, mark: 0, knows } };
        return { pools: state.pools, stop: [], endAt: {}, deleteSnapshots: [], ...store };
      },
      reportExits({ body }) {
        whileThere();
        exits.push(...body.exits);
      },
    },
    () => undefined,
  );
  orchestrator.get("/internal/templates/:template/files/:hash", (request, reply) => {
    const archive = files.get((request.params as { hash: string }).hash);
    if (archive === undefined || request.headers.authorization !== `Bearer ${NODE_TOKEN}`)
      return reply.status(404).send();
    return reply.type("application/octet-stream").send(archive);
  });
  const orchestratorUrl = await orchestrator.listen({ host: "127.0.0.1", port: 0 });
  const port = await freePort();
  const environment: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    SVC_AGENT_PORT: String(port),
    SVC_PROXY_PORT: "0",
    SVC_ORCHESTRATOR_URL: orchestratorUrl,
    SVC_NODE_ID: NODE_ID,
    SVC_OCI_RUNTIME: process.env["SVC_TEST_OCI_RUNTIME"] ?? "svc",
    SVC_NODE_TOKEN: NODE_TOKEN,
    SVC_ORCHESTRATOR_TOKEN: ORCHESTRATOR_TOKEN,
    SVC_STATE_DIR: join(directory, "state"),
    SVC_DISKS_DIR: join(directory, "disks"),
    SVC_RUN_DIR: RUN_DIR,
    SVC_NETWORK_NAME: NETWORK,
    SVC_SUBNET: SUBNET,
    SVC_ENVD_RUNTIME: process.env["SVC_TEST_ENVD_RUNTIME"] ?? "/opt/svc/envd-runtime/current",
    // No packet may leave the machine, so the agent's resolver is a port on which nothing listens.
    SVC_DNS_UPSTREAM: "127.0.0.1:9",
    SVC_HEARTBEAT_EVERY_MS: "500",
    SVC_USAGE_EVERY_MS: "500",
    // Tests also run on a machine whose disk is nearly full.
    SVC_DISK_RESERVE_MB: "1024",
    ...settings,
  };
  const url = `http://127.0.0.1:${port}`;
  const connection = connect(agentApi, {
    url,
    name: "agent",
    headers: { authorization: `Bearer ${ORCHESTRATOR_TOKEN}` },
    // A busy machine stores and restores memory slowly.
    timeoutMs: 120_000,
  });

  const launch = async () => {
    const child = spawn(process.execPath, [builtAgent(main)], {
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    state.child = child;
    let text = "";
    const listening = new Promise<void>((resolve, reject) => {
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8");
        // The agent's warnings and errors appear beside the test that they make fail.
        if (/"level":[56]0/.test(chunk.toString("utf8"))) process.stderr.write(chunk);
        state.said = text;
        if (text.includes('"agent listening"')) resolve();
      });
      child.once("exit", () => reject(new Error(`the agent ended: ${text.slice(-2_000)}`)));
    });
    await listening;
  };
  const end = async (signal: NodeJS.Signals) => {
    const { child } = state;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  };

  const startAs = (executionId: string, more: Partial<StartRequest> = {}) =>
    connection.call.startExecution({
      params: { executionId },
      body: {
        sandboxId: newSandboxId(),
        build: BASE,
        resources: RESOURCES,
        egress: OPEN,
        envs: {},
        accessToken: "a".repeat(32),
        endAt: Date.now() + 1_800_000,
        onTimeout: "kill",
        ...more,
      },
    });

  // Removes the leftovers of a run that was killed.
  await removeAll(own);
  await launch();
  return {
    call: connection.call,
    url,
    exits,
    heartbeats,
    files,
    setPools(pools) {
      state.pools = pools;
    },
    setPlatform(storeId) {
      state.platform = storeId;
    },
    setOrchestrator(answers) {
      state.away = !answers;
    },
    start: (more) => startAs(randomUUID(), more),
    startAs,
    stop: (executionId) => connection.call.stopExecution({ params: { executionId } }),
    async drop() {
      const { stdout } = await run("docker", ["ps", "-q", "--no-trunc", "--filter", `label=svc.node=${NODE_ID}`]);
      await Promise.all(stdout.split("\n").filter(Boolean).map(killFrozen));
      const dropped = async () => (await containers()).every(({ state }) => state !== "running");
      await until(dropped, { what: "the end of all frozen containers", timeoutMs: 120_000 });
    },
    crash: () => end("SIGKILL"),
    launch,
    said: () => state.said,
    snapshots: join(directory, "state", "snapshots"),
    disks: join(directory, "disks"),
    get pid() {
      return state.child?.pid ?? 0;
    },
    async close() {
      await end("SIGTERM");
      await connection.close();
      await orchestrator.close();
      await removeAll(own);
      await unmountBelow(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export interface Ran {
  readonly code: number;
  readonly output: string;
}

/** Runs a command in a sandbox through Docker, so that it has the same limits as everything inside. */
export async function inside(sandboxId: string, user: string, ...command: string[]): Promise<Ran> {
  try {
    const { stdout, stderr } = await run("docker", ["exec", "-u", user, await containerOf(sandboxId), ...command], {
      timeout: 60_000,
    });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const failed = error as { code?: number | string; stdout?: string; stderr?: string };
    if (typeof failed.code !== "number") throw error;
    return { code: failed.code, output: `${failed.stdout ?? ""}${failed.stderr ?? ""}` };
  }
}

/**
 * Finds the container by its name. The agent gives the name in the background, and tests must not read the agent's database.
 */
async function containerOf(sandboxId: string): Promise<string> {
  const found = { id: "" };
  const look = async () => {
    found.id = (await run("docker", ["ps", "-q", "--filter", `name=^svc-${sandboxId}$`])).stdout.trim();
    return found.id !== "";
  };
  await until(look, { what: `a container named svc-${sandboxId}`, timeoutMs: 60_000, everyMs: 20 });
  return found.id;
}

export async function containers(): Promise<{ name: string; state: string }[]> {
  const { stdout } = await run("docker", [
    "ps",
    "-a",
    "--filter",
    `label=svc.node=${NODE_ID}`,
    "--format",
    "{{.Names}} {{.State}}",
  ]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({ name: line.split(" ")[0] ?? "", state: line.split(" ")[1] ?? "" }));
}
