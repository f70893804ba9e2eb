/** The nodes as this orchestrator knows them: their last report, placements since then, and a client for each. */

import {
  agentApi,
  type Heartbeat,
  type NodeFacts,
  type NodeLoad,
  type Resources,
  STORE_HEADER,
} from "../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../shared/api/nodes/nodes.ts";
import { type Connection, connect } from "../../shared/http/client.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import type { NodeKeys } from "../base/keys/node-keys.ts";
import type { Lineage } from "../store/lineage.ts";
import type { NodeStore } from "../store/nodes/nodes.ts";
import type { NodeRecord } from "../store/nodes/record.ts";
import { createAdmission } from "./admission.ts";
import type { Candidate } from "./placement/candidate.ts";
import { allocated, NOTHING, negative, plus, type Sum, withPromised } from "./promised.ts";
import type { NodePlace } from "./routing-table.ts";

type AgentCalls = Connection<typeof agentApi>["call"];

export interface NodeView {
  readonly id: string;
  readonly facts: NodeFacts;
  readonly load: NodeLoad;
  readonly status: NodeStatus;
  readonly statusChangedAt: number;
  readonly lastHeardAt: number;
  readonly createSuccesses: number;
  readonly createFails: number;
  readonly starting: number;
  /** Why the node refuses this store; undefined: it serves it. */
  readonly refusal: string | undefined;
  /** Which of its addresses this orchestrator does not reach. */
  readonly unreached: readonly Finding[];
}

export interface Nodes {
  list(): NodeView[];
  get(id: string): NodeView | undefined;
  candidates(): Candidate[];
  /** @throws {AppError} node_unreachable for an unknown node. */
  agent(id: string): AgentCalls;
  place(id: string): NodePlace | undefined;
  /**
   * True: the node's address or the key of its tokens has changed.
   * @param refusal why the node does not serve this store
   * @throws {AppError} conflict while another agent is this node
   */
  heard(heartbeat: Pick<Heartbeat, "node" | "load">, refusal?: string): Promise<boolean>;
  /**
   * Whether what the records say may change the node's sandboxes. Not before a node that was away for long has reported,
   * because it may refuse this store: the records may be of yesterday.
   */
  mayChange(id: string): boolean;
  /** Why the node refuses this store. */
  refused(id: string): string | undefined;
  /** Which of the node's addresses this orchestrator does not reach. */
  unreached(id: string): readonly Finding[];
  /** @throws {AppError} not_found, or `conflict` for a status that only the platform sets. */
  setWanted(id: string, status: NodeStatus): Promise<void>;
  /** Forgets a removed node, with its connection. */
  remove(id: string): Promise<void>;
  /** Counts a placement from the moment the request leaves; the returned function ends it. `diskSizeMB`: what it adds. */
  placing(id: string, resources: Resources): (outcome: "started" | "failed" | "refused") => void;
  /**
   * A sandbox was paused or ended on the node: its share of processor and memory is free until the next report corrects
   * the sum. Only that report frees its disk, which a paused sandbox keeps.
   */
  freed(id: string, resources: Pick<Resources, "cpuCount" | "memoryMB">): void;
  stop(): Promise<void>;
}

export interface NodesDeps {
  readonly store: NodeStore;
  readonly now: () => number;
  readonly log: Log;
  readonly nodeKeys: NodeKeys;
  readonly lineage: Lineage;
  /** How a node's `https` address is met. */
  readonly meeting: (nodeId: string) => Meeting | undefined;
  readonly nodeTimeoutMs: number;
  /** Id of this machine; undefined: unknown, so no node counts as local. */
  readonly machineId: string | undefined;
}

interface Entry {
  facts: NodeFacts;
  load: NodeLoad;
  wanted: NodeRecord["wanted"];
  status: NodeStatus;
  statusChangedAt: number;
  lastHeardAt: number;
  createSuccesses: number;
  createFails: number;
  placing: Sum;
  connection: Connection<typeof agentApi>;
  /** The key of the token that the connection shows. */
  keyId: string | undefined;
  /** Why the node refuses this store. */
  refusal: string | undefined;
  unreached: readonly Finding[];
}

const MIB = 1024 * 1024;

export async function createNodes(deps: NodesDeps): Promise<Nodes> {
  const startedAt = deps.now();
  const entries = new Map<string, Entry>();
  const admission = createAdmission({ tokenTo: (nodeId) => deps.nodeKeys.tokenTo(nodeId), meeting: deps.meeting });

  function dial(facts: NodeFacts): Connection<typeof agentApi> {
    const { storeId, opening } = deps.lineage.now();
    const headers = {
      authorization: `Bearer ${deps.nodeKeys.tokenTo(facts.nodeId)}`,
      [STORE_HEADER]: `${storeId}.${opening}`,
    };
    const { nodeId, apiUrl: url } = facts;
    return connect(agentApi, { url, name: `node ${nodeId}`, headers, meeting: deps.meeting(nodeId) });
  }

  function statusOf(entry: Entry): NodeStatus {
    const { wanted, lastHeardAt, refusal } = entry;
    const silentSince = Math.max(lastHeardAt, startedAt);
    if (deps.now() - silentSince > deps.nodeTimeoutMs) return "unhealthy";
    if (deps.now() - lastHeardAt > deps.nodeTimeoutMs) return "connecting";
    if (refusal !== undefined) return "unhealthy";
    if (entry.unreached.length > 0) return "connecting";
    return wanted;
  }

  function refreshed(entry: Entry): Entry {
    const status = statusOf(entry);
    if (status !== entry.status) {
      deps.log.info({ nodeId: entry.facts.nodeId, from: entry.status, to: status }, "node status changed");
      entry.status = status;
      entry.statusChangedAt = deps.now();
    }
    return entry;
  }

  for (const { facts, load, wanted, wantedAt, lastHeartbeatAt, keyId } of await deps.store.list()) {
    deps.nodeKeys.restore(facts.nodeId, keyId);
    const entry: Entry = {
      facts,
      load,
      wanted,
      status: "connecting",
      statusChangedAt: wantedAt,
      lastHeardAt: lastHeartbeatAt,
      createSuccesses: 0,
      createFails: 0,
      placing: NOTHING,
      connection: dial(facts),
      keyId: deps.nodeKeys.keyOf(facts.nodeId),
      refusal: undefined,
      unreached: [],
    };
    entries.set(facts.nodeId, refreshed(entry));
  }

  function view(entry: Entry): NodeView {
    const { facts, load, status, statusChangedAt, lastHeardAt, createSuccesses, createFails, refusal, unreached } =
      refreshed(entry);
    return {
      id: facts.nodeId,
      facts,
      load,
      status,
      statusChangedAt,
      lastHeardAt,
      createSuccesses,
      createFails,
      refusal,
      unreached,
      starting: Math.max(entry.placing.count, load.sandboxStartingCount),
    };
  }

  return {
    list: () => [...entries.values()].map(view).sort((a, b) => a.id.localeCompare(b.id)),
    get(id) {
      const entry = entries.get(id);
      return entry === undefined ? undefined : view(entry);
    },
    candidates: () => [...entries.values()].map((entry) => toCandidate(refreshed(entry))),
    agent(id) {
      const entry = entries.get(id);
      if (entry === undefined) throw new AppError("node_unreachable", `node ${id} is not known`);
      return entry.connection.call;
    },
    place(id) {
      const facts = entries.get(id)?.facts;
      if (facts === undefined) return undefined;
      return { proxyUrl: facts.proxyUrl, sameHost: deps.machineId !== undefined && facts.machineId === deps.machineId };
    },

    async heard({ node: facts, load }, refusal) {
      const before = entries.get(facts.nodeId);
      const isFresh = before !== undefined && deps.now() - before.lastHeardAt <= deps.nodeTimeoutMs;
      const unreached = await admission.admit(facts, isFresh ? before.facts : undefined);
      const at = deps.now();
      const known = entries.get(facts.nodeId);
      const keyId = deps.nodeKeys.keyOf(facts.nodeId);
      const moved =
        known === undefined ||
        known.keyId !== keyId ||
        known.facts.proxyUrl !== facts.proxyUrl ||
        known.facts.machineId !== facts.machineId;
      if (known === undefined) {
        deps.log.info({ nodeId: facts.nodeId, apiUrl: facts.apiUrl }, "node registered");
        entries.set(facts.nodeId, {
          facts,
          load,
          wanted: "ready",
          status: unreached.length > 0 ? "connecting" : "ready",
          statusChangedAt: at,
          lastHeardAt: at,
          createSuccesses: 0,
          createFails: 0,
          placing: NOTHING,
          connection: dial(facts),
          keyId,
          refusal,
          unreached,
        });
      } else {
        const same = known.facts.apiUrl === facts.apiUrl && known.keyId === keyId;
        const former = same ? undefined : known.connection;
        if (former !== undefined) known.connection = dial(facts);
        known.keyId = keyId;
        known.facts = facts;
        known.load = load;
        known.lastHeardAt = at;
        known.refusal = refusal;
        known.unreached = unreached;
        refreshed(known);
        await former?.close();
      }
      await deps.store.report(facts, load, { at, keyId });
      return moved;
    },

    mayChange(id) {
      const entry = entries.get(id);
      return entry === undefined || (entry.refusal === undefined && refreshed(entry).status !== "connecting");
    },
    refused: (id) => entries.get(id)?.refusal,
    unreached: (id) => entries.get(id)?.unreached ?? [],

    async setWanted(id, status) {
      const entry = entries.get(id);
      if (entry === undefined) throw new AppError("not_found", `node '${id}' not found`);
      if (status === "connecting" || status === "unhealthy") {
        throw new AppError("conflict", `status '${status}' is set by the platform; choose ready, draining or standby`);
      }
      if (entry.wanted === "draining" && status === "standby") {
        throw new AppError("conflict", "a draining node cannot stand by; make it ready first");
      }
      await deps.store.setWanted(id, status, deps.now());
      entry.wanted = status;
      refreshed(entry);
    },

    async remove(id) {
      const entry = entries.get(id);
      entries.delete(id);
      admission.forget(id);
      await entry?.connection.close();
    },

    placing(id, { cpuCount, memoryMB, diskSizeMB }) {
      const entry = entries.get(id);
      if (entry === undefined) return () => undefined;
      const placed = { count: 1, cpu: cpuCount, memoryBytes: memoryMB * MIB, diskBytes: diskSizeMB * MIB };
      entry.placing = plus(entry.placing, placed);
      return (outcome) => {
        entry.placing = plus(entry.placing, negative(placed));
        if (outcome === "failed") entry.createFails++;
        if (outcome !== "started") return;
        entry.createSuccesses++;
        entry.load = allocated(entry.load, placed);
      };
    },

    freed(id, { cpuCount, memoryMB }) {
      const entry = entries.get(id);
      if (entry !== undefined) {
        const ended = { count: 1, cpu: cpuCount, memoryBytes: memoryMB * MIB, diskBytes: 0 };
        entry.load = allocated(entry.load, negative(ended));
      }
    },

    async stop() {
      await Promise.all([...entries.values()].map(({ connection }) => connection.close()));
    },
  };
}

/** Why packets of sandboxes do not leave the node; empty: they do. */
export function networkProblems({ findings = [] }: NodeLoad): string {
  return findings
    .filter(({ id }) => id.startsWith("network."))
    .map(({ problem, evidence }) => `${problem}: ${evidence}`)
    .join("; ");
}

function toCandidate({ facts, load, status, placing, refusal, unreached }: Entry): Candidate {
  return {
    id: facts.nodeId,
    status,
    labels: facts.labels,
    cpuCount: load.cpuCount,
    cpuPercent: load.cpuPercent,
    memoryTotalBytes: load.memoryTotalBytes,
    allocatedCpu: load.allocatedCpu + placing.cpu,
    allocatedMemoryBytes: load.allocatedMemoryBytes + placing.memoryBytes,
    sandboxCount: load.sandboxCount + placing.count,
    maxSandboxes: facts.maxSandboxes,
    noMemory: facts.capabilities.memorySnapshots
      ? undefined
      : (facts.capabilities.detail["memorySnapshots"] ?? "it does not say why"),
    noNetwork: load.networkRefused === true ? networkProblems(load) : undefined,
    disk: withPromised(load.sandboxDisk, placing.diskBytes),
    pools: load.pools,
    ...(refusal === undefined ? {} : { refuses: true }),
    ...(unreached.length === 0 ? {} : { unreached: true }),
  };
}
