/**
 * The nodes as this orchestrator knows them: their last report, placements since then, and a client for each. A report is
 * written to the row of its node, where orchestrators that did not get it read it.
 */

import { agentApi, type NodeFacts, type Resources, STORE_HEADER } from "../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../shared/api/nodes/nodes.ts";
import { type Connection, connect } from "../../shared/http/client.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import type { Background } from "../base/background.ts";
import type { NodeKeys } from "../base/keys/node-keys.ts";
import type { Lineage } from "../store/lineage.ts";
import type { NodeStore } from "../store/nodes/nodes.ts";
import { createAdmission, removed } from "./admission.ts";
import {
  type Entry,
  firstEntry,
  heardAtOf,
  imagesOf,
  type Learned,
  lasting,
  loadOf,
  loadOfRow,
  type NodeView,
  noteFailure,
  type Report,
  statusAt,
  toCandidate,
  toView,
  whyAway,
} from "./entry.ts";
import type { Candidate } from "./placement/candidate.ts";
import { allocated, negative, plus } from "./promised.ts";
import type { NodePlace } from "./routing-table.ts";
import type { StatusChange } from "./telling/status-events.ts";

type AgentCalls = Connection<typeof agentApi>["call"];

export interface Nodes {
  list(): NodeView[];
  get(id: string): NodeView | undefined;
  candidates(): Candidate[];
  /** The nodes that report to have the image of a build. */
  holding(buildId: string): string[];
  /** Whether the platform has another node than this one. */
  hasOthers(id: string): boolean;
  /** How many are ready. Silence is noticed within a second, everything else at once. */
  ready(): number;
  /** @throws {AppError} node_unreachable for an unknown node. */
  agent(id: string): AgentCalls;
  place(id: string): NodePlace | undefined;
  /**
   * True: the node's address or the key of its tokens has changed.
   * @param refusal why the node does not serve this store
   * @throws {AppError} conflict while another agent is this node
   */
  heard(report: Report, refusal?: string): Promise<boolean>;
  /** Reads what other orchestrators have heard and set. Returns the nodes whose address or key of tokens has changed. */
  refresh(): Promise<string[]>;
  /**
   * Writes the times of reports that are not in the nodes' rows yet, so that the next process knows them. Only an
   * orchestrator that is alone on its database needs this.
   */
  keepTimes(): Promise<void>;
  /**
   * Whether what the records say may change the node's sandboxes. Not before a node that was away for long has reported,
   * because it may refuse this store: the records may be of yesterday.
   */
  mayChange(id: string): boolean;
  /** Why the node refuses this store. */
  refused(id: string): string | undefined;
  /** For how long this orchestrator has neither heard the node nor read that another one has; infinite for an unknown node. */
  silentMs(id: string): number;
  /** Which of the node's addresses this orchestrator does not reach. */
  unreached(id: string): readonly Finding[];
  /**
   * @param only nothing is set for a node whose drain has ended
   * @throws {AppError} not_found, or `conflict` for a status that only the platform sets.
   */
  setWanted(id: string, status: NodeStatus, only?: "while drained"): Promise<void>;
  /** Forgets a removed node, with its connection. */
  remove(id: string): Promise<void>;
  /** Counts a placement from the moment the request leaves; the returned function ends it. `diskSizeMB`: what it adds. */
  placing(id: string, resources: Resources): (outcome: "started" | "refused" | { readonly failed: AppError }) => void;
  /**
   * A sandbox was paused or ended on the node: its share of processor and memory is free until the next report corrects
   * the sum. Only that report frees its disk, which a paused sandbox keeps.
   */
  freed(id: string, resources: Pick<Resources, "cpuCount" | "memoryMB">): void;
  stop(): Promise<void>;
}

export interface NodesDeps {
  readonly store: Pick<NodeStore, "list" | "getMany" | "standings" | "report" | "heard" | "regain" | "setWanted">;
  /** True if no other orchestrator can use the database. This process has then received every report itself. */
  readonly alone: boolean;
  readonly now: () => number;
  readonly log: Log;
  readonly nodeKeys: NodeKeys;
  readonly lineage: Lineage;
  /** How a node's `https` address is met. */
  readonly meeting: (nodeId: string) => Meeting | undefined;
  readonly nodeTimeoutMs: number;
  readonly nodeLostMs: number;
  readonly background: Background;
  /** Id of this machine; undefined: unknown, so no node counts as local. */
  readonly machineId: string | undefined;
  /** Called when this orchestrator sees another status of a node. */
  readonly onStatus?: (change: StatusChange) => void;
  /** Returns the time in milliseconds, which never jumps; absent: that of the process. */
  readonly elapsed?: () => number;
}

const MIB = 1024 * 1024;
/** Longest time between two writes of a report in which nothing has changed, as long as the limits of silence allow. */
const WRITE_MS = 3_000;
/** Time between two looks for nodes that have fallen silent, for a count of all. */
const LOOK_MS = 1_000;

export async function createNodes(deps: NodesDeps): Promise<Nodes> {
  const { elapsed = () => performance.now() } = deps;
  const time = { now: deps.now, elapsed };
  const startedAt = elapsed();
  const writeMs = Math.min(WRITE_MS, deps.nodeTimeoutMs / 4, deps.nodeLostMs / 4);
  const entries = new Map<string, Entry>();
  const calledBack = new Set<string>();
  /** Times of last reports that are newer than those in the nodes' rows. */
  const heardAt = new Map<string, number>();
  const count = { ready: 0, lookedAt: Number.NEGATIVE_INFINITY };
  let reading: Promise<unknown> = Promise.resolve();
  const admission = createAdmission({ tokenTo: (nodeId) => deps.nodeKeys.tokenTo(nodeId), meeting: deps.meeting });

  function dial(facts: NodeFacts): Connection<typeof agentApi> {
    const { storeId, opening } = deps.lineage.now();
    const headers = {
      authorization: `Bearer ${deps.nodeKeys.tokenTo(facts.nodeId)}`,
      [STORE_HEADER]: `${storeId}.${opening}`,
    };
    const { nodeId, apiUrl } = facts;
    return connect(agentApi, { url: apiUrl, name: `node ${nodeId}`, headers, meeting: deps.meeting(nodeId) });
  }

  function refreshed(entry: Entry): Entry {
    const look = { at: elapsed(), startedAt, nodeTimeoutMs: deps.nodeTimeoutMs };
    const status = statusAt(entry, look);
    if (status !== entry.status) {
      const change = { nodeId: entry.facts.nodeId, from: entry.status, to: status };
      deps.log.info(change, "node status changed");
      count.ready += Number(status === "ready") - Number(entry.status === "ready");
      entry.status = status;
      entry.statusChangedAt = deps.now();
      deps.onStatus?.({ ...change, at: entry.statusChangedAt, why: whyAway(entry, look) });
    }
    return entry;
  }

  for (const { wantedAt, wanted, lastHeartbeatAt, ...report } of await deps.store.list()) {
    const { facts, refusal } = report;
    deps.nodeKeys.restore(facts.nodeId, report.keyId);
    const keyId = deps.nodeKeys.keyOf(facts.nodeId);
    const load = loadOfRow(report.load, deps.alone);
    const entry = newEntry({ facts, load, refusal, keyId, lastHeardAt: lastHeartbeatAt }, wanted);
    const row = { heartbeatAt: lastHeartbeatAt, writtenAt: 0, says: "" };
    entries.set(facts.nodeId, refreshed(Object.assign(entry, { statusChangedAt: wantedAt, row })));
  }

  const view = (entry: Entry): NodeView => toView(refreshed(entry));

  /** True: the node's address or the key of its tokens has changed. */
  async function learn(learned: Learned, wanted: Entry["wanted"] = "ready"): Promise<boolean> {
    const { facts, keyId } = learned;
    const known = entries.get(facts.nodeId);
    if (known === undefined) {
      deps.log.info({ nodeId: facts.nodeId, apiUrl: facts.apiUrl }, "node registered");
      entries.set(facts.nodeId, refreshed(newEntry(learned, wanted)));
      return true;
    }
    const { proxyUrl, machineId, apiUrl } = known.facts;
    const moved = known.keyId !== keyId || proxyUrl !== facts.proxyUrl || machineId !== facts.machineId;
    const former = apiUrl === facts.apiUrl && known.keyId === keyId ? undefined : known.connection;
    if (former !== undefined) known.connection = dial(facts);
    Object.assign(known, learned, { images: imagesOf(learned.load), heardAt: heardAtOf(learned, time, known) });
    refreshed(known);
    await former?.close();
    return moved || former !== undefined;
  }

  function newEntry(learned: Learned, wanted: Entry["wanted"]): Entry {
    return firstEntry(learned, { wanted, time, connection: dial(learned.facts) });
  }

  /** Whether this orchestrator reaches a node that reports to another one. */
  function callBack(entry: Entry): void {
    const { facts } = entry;
    if (calledBack.has(facts.nodeId)) return;
    calledBack.add(facts.nodeId);
    deps.background.run("call a node back", async () => {
      try {
        entry.unreached = await admission.admit(facts, undefined);
        refreshed(entry);
      } finally {
        calledBack.delete(facts.nodeId);
      }
    });
  }

  async function readRows(): Promise<string[]> {
    const before = new Map([...entries].map(([id, { row }]) => [id, row]));
    const standings = new Map((await deps.store.standings()).map((standing) => [standing.id, standing]));
    // What has been heard here since then is newer than what was read.
    const same = (id: string) => entries.get(id)?.row === before.get(id);
    const newer = [...standings.values()].filter(
      ({ id, lastHeartbeatAt }) => lastHeartbeatAt !== before.get(id)?.heartbeatAt,
    );
    const moved: string[] = [];
    for (const { wanted, lastHeartbeatAt, ...report } of await deps.store.getMany(newer.map(({ id }) => id))) {
      const { facts, load, refusal } = report;
      const { nodeId } = facts;
      if (!same(nodeId)) continue;
      deps.nodeKeys.restore(nodeId, report.keyId);
      const keyId = deps.nodeKeys.keyOf(nodeId);
      if (await learn({ facts, load, keyId, refusal, lastHeardAt: lastHeartbeatAt }, wanted)) moved.push(nodeId);
      const entry = entries.get(nodeId);
      if (entry === undefined) continue;
      entry.row = { heartbeatAt: lastHeartbeatAt, writtenAt: performance.now(), says: lasting(entry) };
      callBack(entry);
    }
    for (const [id, entry] of entries) {
      const standing = standings.get(id);
      if (standing !== undefined) {
        entry.wanted = standing.wanted;
        refreshed(entry);
      } else if (entry.row !== undefined && same(id)) await forget(id);
    }
    return moved;
  }

  /** One after another: what was read earlier never replaces what was read or set later. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = reading.then(work);
    reading = done.catch(() => undefined);
    return done;
  }

  async function forget(id: string): Promise<void> {
    const entry = entries.get(id);
    if (entry?.status === "ready") count.ready--;
    entries.delete(id);
    heardAt.delete(id);
    admission.forget(id);
    deps.nodeKeys.forget(id);
    await entry?.connection.close();
  }

  /** Writes the report to the node's row, unless it is there and nothing has changed. */
  async function record(entry: Entry, news: boolean): Promise<void> {
    const { facts, load, keyId, refusal, row } = entry;
    const says = lasting(entry);
    if (!news && row?.says === says) {
      if (deps.alone) heardAt.set(facts.nodeId, entry.lastHeardAt);
      if (deps.alone || performance.now() - row.writtenAt < writeMs) return;
    }
    heardAt.delete(facts.nodeId);
    const writtenAt = performance.now();
    const heartbeatAt = await deps.store.report(facts, load, { keyId, refusal, news });
    entry.row = { heartbeatAt, writtenAt, says };
  }

  return {
    list: () => [...entries.values()].map(view).sort((a, b) => a.id.localeCompare(b.id)),
    get: (id) => [entries.get(id)].flatMap((entry) => (entry === undefined ? [] : [view(entry)]))[0],
    candidates: () => [...entries.values()].map((entry) => toCandidate(refreshed(entry))),
    holding: (buildId) => [...entries].flatMap(([id, { images }]) => (images.has(buildId) ? [id] : [])),
    hasOthers: (id) => entries.size > (entries.has(id) ? 1 : 0),
    ready() {
      if (elapsed() - count.lookedAt >= LOOK_MS) {
        for (const entry of entries.values()) refreshed(entry);
        count.lookedAt = elapsed();
      }
      return count.ready;
    },
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

    async heard(report, refusal) {
      const facts = report.node;
      const { nodeId } = facts;
      const before = entries.get(nodeId);
      const isFresh = before !== undefined && elapsed() - before.heardAt <= deps.nodeTimeoutMs;
      const unreached = await admission.admit(facts, isFresh ? before.facts : undefined);
      // The call back takes seconds where a firewall drops it. A row that it made now would keep the name of the node for ever.
      if (before !== undefined && !entries.has(nodeId)) throw removed(nodeId);
      const keyId = deps.nodeKeys.keyOf(nodeId);
      const moved = await learn({ facts, load: loadOf(report), keyId, refusal, unreached, lastHeardAt: deps.now() });
      const entry = entries.get(nodeId);
      if (entry !== undefined) await record(entry, moved);
      if (!isFresh && before !== undefined && (await deps.store.regain(nodeId)))
        deps.log.info({ nodeId }, "a lost node reports again");
      return moved;
    },

    refresh: () => inTurn(readRows),

    async keepTimes() {
      if (heardAt.size === 0) return;
      const ids = [...heardAt.keys()];
      const earliest = Math.min(...heardAt.values());
      heardAt.clear();
      await deps.store.heard(ids, earliest);
    },

    mayChange(id) {
      const entry = entries.get(id);
      return entry === undefined || (entry.refusal === undefined && refreshed(entry).status !== "connecting");
    },
    refused: (id) => entries.get(id)?.refusal,
    silentMs: (id) => elapsed() - (entries.get(id)?.heardAt ?? Number.NEGATIVE_INFINITY),
    unreached: (id) => entries.get(id)?.unreached ?? [],

    async setWanted(id, status, only) {
      const entry = entries.get(id);
      if (entry === undefined) throw new AppError("not_found", `node '${id}' not found`);
      if (status === "connecting" || status === "unhealthy") {
        throw new AppError("conflict", `status '${status}' is set by the platform; choose ready, draining or standby`);
      }
      if (entry.wanted === "draining" && status === "standby") {
        throw new AppError("conflict", "a draining node cannot stand by; make it ready first");
      }
      if (!(await deps.store.setWanted(id, status, deps.now(), only))) return;
      await inTurn(() => {
        entry.wanted = status;
        refreshed(entry);
        return Promise.resolve();
      });
    },

    remove: forget,

    placing(id, { cpuCount, memoryMB, diskSizeMB }) {
      const entry = entries.get(id);
      if (entry === undefined) return () => undefined;
      const placed = { count: 1, cpu: cpuCount, memoryBytes: memoryMB * MIB, diskBytes: diskSizeMB * MIB };
      entry.placing = plus(entry.placing, placed);
      return (outcome) => {
        entry.placing = plus(entry.placing, negative(placed));
        if (typeof outcome === "object") noteFailure(entry, deps.now(), outcome.failed);
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
