/** What must hold in a cluster in one process after a fault, by the function of `svc doctor` and of the tests of crashes. */

import { recordProblems } from "../../../machine/invariants/invariants.ts";
import { findEventProblems, type LifecycleEvent } from "../fleet/event-order.ts";
import { ADMIN_TOKEN, type Cluster } from "./cluster.ts";

interface Listed {
  readonly sandboxID: string;
  readonly state: string;
  readonly endAt: string;
  readonly nodeID: string;
}

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
/** Sandboxes of a test that are more than a page are none of these tests. */
const MOST = 100;

/**
 * One sentence for each broken invariant: records and what runs on the nodes, counts, and the events of the cluster's own project.
 * @param now the clock of the orchestrator's machine
 */
export async function clusterProblems(
  cluster: Pick<Cluster, "ask" | "agents">,
  now: () => number = Date.now,
): Promise<readonly string[]> {
  const all = (await cluster.ask("GET", `/admin/sandboxes?limit=${MOST}`, admin)).body as readonly Listed[];
  const counts = (await cluster.ask("GET", "/admin/sandboxes/running-counts", admin)).body as Record<string, number>;
  const events = (await cluster.ask("GET", `/events/sandboxes?orderAsc=true&limit=${MOST}`)).body as LifecycleEvent[];
  if (all.length === MOST || events.length === MOST) throw new Error("the test has more than the first page shows");
  const idsOf = (wanted: (state: string) => boolean, of = all) =>
    of.filter(({ state }) => wanted(state)).map(({ sandboxID }) => sandboxID);
  const isRunning = (state: string) => state === "running";
  const isPaused = (state: string) => state === "paused";
  const nodes = cluster.agents.flatMap((agent) => {
    const own = all.filter(({ nodeID }) => nodeID === agent.nodeId);
    const records = {
      running: own.filter(({ state }) => isRunning(state)),
      paused: idsOf(isPaused, own),
      moving: idsOf((state) => !isRunning(state) && !isPaused(state), own),
      held: [],
      unseen: 0,
    };
    const containers = [...agent.live.values()].map(({ body }) => ({
      name: `svc-${body.sandboxId}`,
      state: "running",
    }));
    return recordProblems(records, containers, now()).map(({ text }) => `${agent.nodeId}: ${text}`);
  });
  const running = idsOf(isRunning);
  const counted = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const miscounted = counted === running.length ? [] : [`${counted} sandboxes are counted, and ${running.length} run`];
  const listed = { running: new Set(running), paused: new Set(idsOf(isPaused)) };
  return [...nodes, ...miscounted, ...findEventProblems(events, listed)];
}
