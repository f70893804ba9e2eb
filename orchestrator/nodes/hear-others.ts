/**
 * Reads the reports that other orchestrators have recorded, and measures for how long this orchestrator could have learnt of
 * any report. A node is silent only from then on: no orchestrator records a report while the database is away, and this
 * process reads none while it stands still.
 */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Feed } from "../store/changes/feed.ts";
import type { Nodes } from "./nodes.ts";
import type { RoutingTable } from "./routing-table.ts";

export interface HearingDeps {
  readonly nodes: Pick<Nodes, "refresh" | "keepTimes">;
  readonly routes: Pick<RoutingTable, "refreshNode">;
  readonly feed: Pick<Feed, "on">;
  /** Whether no other orchestrator can use the database: nothing is read then, and times are written once for many reports. */
  readonly alone: boolean;
  readonly log: Log;
  /** Returns the time in milliseconds, which never goes back; absent: that of the process. */
  readonly elapsed?: () => number;
}

export interface Hearing {
  /** How long reports of nodes have been heard, or read, without a gap. */
  heardForMs(): number;
  stop(): Promise<void>;
}

/** Time between two looks. Nodes report every few seconds. */
const EVERY_MS = 2_000;
/** A longer time between two looks is a gap. */
const GAP_MS = 10_000;

export function hearOthers(deps: HearingDeps): Hearing {
  const { nodes, routes, feed, alone, log, elapsed = () => performance.now() } = deps;
  const state = { since: elapsed(), last: elapsed() };

  async function read(): Promise<void> {
    if (alone) return nodes.keepTimes();
    for (const nodeId of await nodes.refresh()) routes.refreshNode(nodeId);
  }

  function noteGap(): void {
    const at = elapsed();
    if (at - state.last > GAP_MS) state.since = at;
  }

  const looking = loop({ name: "reports of nodes", everyMs: EVERY_MS, log }, async () => {
    await read();
    noteGap();
    state.last = elapsed();
  });
  feed.on("node", read);
  return {
    heardForMs() {
      noteGap();
      return elapsed() - state.since;
    },
    stop: () => looking.stop(),
  };
}
