/** The agent's own API over a socket, on a machine in memory, and what `svc doctor` would find wrong on that machine. */

import { onTestFinished } from "vitest";
import type { Instruments } from "../../../agent/api/prometheus.ts";
import { startApi } from "../../../agent/api/start-api.ts";
import { AgentConfig } from "../../../agent/config.ts";
import { peeringByTokens } from "../../../agent/joining/peering.ts";
import { createReplaceEgress } from "../../../agent/sandboxes/replace-egress.ts";
import { createServing } from "../../../agent/serving/serving.ts";
import { nodeProblems, recordProblems } from "../../../machine/invariants/invariants.ts";
import { agentApi, type CollectBlobs } from "../../../shared/agent-api/routes.ts";
import { type Connection, connect } from "../../../shared/http/client.ts";
import { readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { liveParts, type Parts, type PartsOptions } from "../fakes/agent-parts.ts";
import type { FakeEngine } from "../fakes/fake-engine.ts";
import { noVolumes } from "../fakes/fake-machine.ts";

const TOKEN = "orchestrator-token-of-the-test";
const log = createLog({ component: "test", level: "silent" });

export interface AgentInMemory {
  readonly engine: FakeEngine;
  readonly parts: Parts;
  readonly call: Connection<typeof agentApi>["call"];
  /** A request as an orchestrator of another version would send it. */
  ask(method: string, path: string, body?: unknown): Promise<Response>;
  /** What it was to keep of the blob store, for each collection. */
  readonly collections: CollectBlobs[];
}

/** Starts an agent, and stops it after the test. Builds, volumes and logs are not there. */
export async function agentInMemory(options: PartsOptions = {}): Promise<AgentInMemory> {
  const { engine, parts } = liveParts(options);
  const { sandboxes, taker, snapshots, stored, stores, gate } = parts;
  const machine = engine.machine();
  const teardown = new Teardown(log);
  const collections: CollectBlobs[] = [];
  const unused = {} as never;
  const counts = { started: () => undefined, startFailed: () => undefined, stopped: () => undefined };
  const api = await startApi(
    {
      config: readConfig(AgentConfig, { SVC_AGENT_PORT: "0" }),
      peering: peeringByTokens({ nodeToken: "node-token-of-the-test", orchestratorToken: TOKEN }, []),
      identity: { nodeId: "n1", serviceInstanceId: "run" },
      instruments: { ...counts, contentType: "text/plain", text: () => Promise.resolve("") } as unknown as Instruments,
      serving: createServing({
        nodeId: "n1",
        store: stores.served,
        kept: () => sandboxes.running().length,
        ask: () => undefined,
        log,
      }),
      sandboxes,
      taker,
      snapshots,
      arrivals: stored.arrivals,
      imageArrivals: stored.imageArrivals,
      offers: stored.offers,
      snapshotChecks: stored.snapshotChecks,
      holding: stored.holding,
      collecting: { begin: (body) => void collections.push(body) },
      replaceEgress: createReplaceEgress({ docker: machine.docker, egress: machine.egress, gate, log }),
      egress: engine.egressProcess,
      samples: stores.samples,
      networkLog: stores.networkLog,
      usage: { latest: () => undefined },
      reach: { problemOf: () => undefined },
      volumes: noVolumes,
      refusal: () => undefined,
      checks: () => ({}),
      lastReport: () => 0,
      builds: unused,
      volumeFiles: unused,
      logs: unused,
      listGarbage: unused,
      doctor: unused,
      holdings: unused,
      log,
    },
    teardown,
  );
  const headers = { authorization: `Bearer ${TOKEN}` };
  const orchestrator = connect(agentApi, { url: api.url, name: "agent", headers });
  teardown.add("orchestrator", () => orchestrator.close());
  onTestFinished(() => teardown.run());
  api.start();
  return {
    engine,
    parts,
    call: orchestrator.call,
    ask: (method, path, body) =>
      fetch(`${api.url}${path}`, {
        method,
        headers: { ...headers, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    collections,
  };
}

/** One sentence for each broken invariant, by the function of `svc doctor`; what the agent runs and keeps are the records. */
export function problemsOnMachine({ engine, parts }: Pick<AgentInMemory, "engine" | "parts">): readonly string[] {
  const containers = [...engine.containers.values()].map(({ id, name, running, netns }) => ({
    id,
    name,
    state: running ? "running" : "exited",
    slot: netns?.split("/").at(-1),
  }));
  const links = [...engine.slots].map((number) => engine.plan.slot(number).link);
  const kept = parts.stores.snapshots.all();
  const records = {
    running: parts.sandboxes
      .running()
      .map(({ sandboxId, endAt }) => ({ sandboxID: sandboxId, endAt: new Date(endAt).toISOString() })),
    paused: kept.filter(({ kind, state }) => kind === "pause" && state === "stored").map(({ sandboxId }) => sandboxId),
    moving: [],
    held: [],
    unseen: 0,
  };
  const onNode = nodeProblems({
    containers,
    namespaces: links,
    links,
    pinned: [...engine.firewall.keys()],
    annotated: [...engine.annotations.keys()],
    disks: [],
    fetchedDisks: 0,
  });
  return [...recordProblems(records, containers, Date.now()), ...onNode].map(({ text }) => text);
}
