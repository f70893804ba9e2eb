/** Metrics of the nodes as this orchestrator sees them, of those that were lost, and of drains. */

import { Counter, Gauge, type Registry } from "prom-client";
import type { DrainedState, DrainState } from "../../shared/api/nodes/drains.ts";
import { clockSkewMs } from "../nodes/clock.ts";
import type { NodeView } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { StartTurns } from "../nodes/start-turns.ts";
import type { NodeStore } from "../store/nodes/nodes.ts";

/** A drain that its operator has not ended. */
export interface DrainProgress {
  readonly nodeId: string;
  readonly state: DrainState;
  /** Sandboxes that keep the node from being empty. */
  readonly left: number;
}

export interface NodeSources {
  readonly nodes: Pick<Nodes, "list">;
  readonly store: { readonly nodes: Pick<NodeStore, "lost"> };
  readonly turns: Pick<StartTurns, "waiting">;
  readonly now: () => number;
  /** How long after a report the node's sandboxes stand still; undefined: it has no lease. */
  readonly leaseMs: (node: NodeView) => number | undefined;
  readonly drains: () => Promise<readonly DrainProgress[]>;
}

export interface NodeMetrics {
  /** A node counts as lost. */
  nodeLost(): void;
  /** What a drain has come to with a sandbox. */
  drained(result: DrainedState): void;
}

export function nodeMetrics(registers: Registry[], sources: NodeSources): NodeMetrics {
  reportGauges(registers, sources);
  databaseGauges(registers, sources);
  const lost = new Counter({
    name: "svc_nodes_lost_total",
    help: "Nodes that this orchestrator has counted as lost: none had heard them for the limit",
    registers,
  });
  const drained = new Counter({
    name: "svc_drain_sandboxes_total",
    help: "Sandboxes that drains have come to, by result: moved, stored, stays, ended, killed; one that stays is tried again",
    labelNames: ["result"],
    registers,
  });
  return { nodeLost: () => lost.inc(), drained: (result) => drained.inc({ result }) };
}

/** What the last reports say. */
function reportGauges(registers: Registry[], { nodes, turns, now, leaseMs }: NodeSources): void {
  const gauge = (
    name: string,
    help: string,
    values: (node: NodeView) => readonly (readonly [Readonly<Record<string, string>>, number])[],
  ) => {
    const labelNames = ["node", "resource", "status"];
    return new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const node of nodes.list()) {
          for (const [labels, value] of values(node)) this.set({ node: node.id, ...labels }, value);
        }
      },
    });
  };
  const orNone = (value: number | undefined) => (value === undefined ? [] : [[{}, value] as const]);
  gauge("svc_node_up", "1 when the node is ready, else 0", ({ status }) => [[{}, Number(status === "ready")]]);
  gauge("svc_node_status", "1 for the node's current status", ({ status }) => [[{ status }, 1]]);
  gauge("svc_node_heartbeat_age_seconds", "Time since the node's last report", ({ lastHeardAt }) => [
    [{}, (now() - lastHeardAt) / 1000],
  ]);
  gauge(
    "svc_node_lease_remaining_seconds",
    "Time until the node's sandboxes stand still without another report, below 0 when they do; absent: it has no lease",
    (node) => {
      const forMs = leaseMs(node);
      return orNone(forMs === undefined ? undefined : (node.lastHeardAt + forMs - now()) / 1000);
    },
  );
  gauge(
    "svc_node_clock_skew_seconds",
    "How far the node's clock is ahead of the orchestrator's, less the way of the report",
    (node) => {
      const skewMs = clockSkewMs(node);
      return orNone(skewMs === undefined ? undefined : skewMs / 1000);
    },
  );
  gauge("svc_node_starts_waiting", "Starts that wait for a turn on the node, at this orchestrator", ({ id }) => [
    [{}, turns.waiting().get(id) ?? 0],
  ]);
  gauge("svc_node_capacity", "Cores and bytes of the machine", ({ load }) => [
    [{ resource: "cpu" }, load.cpuCount],
    [{ resource: "memory" }, load.memoryTotalBytes],
  ]);
  gauge("svc_node_allocated", "Cores and bytes promised to sandboxes", ({ load }) => [
    [{ resource: "cpu" }, load.allocatedCpu],
    [{ resource: "memory" }, load.allocatedMemoryBytes],
  ]);
}

type NodeState = "ready" | "cordoned" | "draining" | "standby" | "connecting" | "unreachable" | "lost";

/** What the database knows beyond that. While it does not answer, these have no values. */
function databaseGauges(registers: Registry[], { nodes, store, drains }: NodeSources): void {
  const read = together(async () => ({ drains: await drains(), lost: new Set(await store.nodes.lost()) }));
  type Known = NonNullable<Awaited<ReturnType<typeof read>>>;
  const gauge = (name: string, help: string, labelNames: string[], show: (known: Known, one: Gauge) => void) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        const known = await read();
        this.reset();
        if (known !== undefined) show(known, this);
      },
    });
  gauge(
    "svc_node_state",
    "1 for what the node is: ready, cordoned, draining, standby, connecting, unreachable, lost",
    ["node", "state"],
    (known, one) => {
      const drained = new Set(known.drains.map(({ nodeId }) => nodeId));
      for (const node of nodes.list())
        one.set({ node: node.id, state: stateOf(node, { lost: known.lost, drained }) }, 1);
    },
  );
  gauge(
    "svc_drains",
    "Drains that no operator has ended, by state: draining, done, overdue",
    ["state"],
    (known, one) => {
      for (const state of ["draining", "done", "overdue"])
        one.set({ state }, known.drains.filter((drain) => drain.state === state).length);
    },
  );
  gauge(
    "svc_drain_sandboxes_left",
    "Sandboxes that keep a node from being empty that is drained",
    ["node"],
    (known, one) => {
      for (const { nodeId, left } of known.drains) one.set({ node: nodeId }, left);
    },
  );
}

function stateOf(
  { id, status, unreached }: NodeView,
  { lost, drained }: { readonly lost: ReadonlySet<string>; readonly drained: ReadonlySet<string> },
): NodeState {
  if (status === "draining") return drained.has(id) ? "draining" : "cordoned";
  if (status === "ready" || status === "standby") return status;
  if (lost.has(id)) return "lost";
  return status === "unhealthy" || unreached.length > 0 ? "unreachable" : "connecting";
}

/** Those that ask at the same time share one reading. Undefined: it failed. */
function together<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  const state: { underWay?: Promise<T | undefined> | undefined } = {};
  return () => {
    state.underWay ??= read()
      .catch(() => undefined)
      .finally(() => {
        state.underWay = undefined;
      });
    return state.underWay;
  };
}
