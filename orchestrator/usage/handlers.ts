/** Handlers of a project's metrics over time. */

import type { teamMetricsApi } from "../../shared/api/teams.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import { isProject } from "../store/projects/projects.ts";
import { type Project } from "../store/projects/record.ts";
import { STORED_STEPS, slotOf, stepsFor } from "../store/usage/steps.ts";
import type { UsageStore } from "../store/usage/usage.ts";
import { highest, type Point, timestamps, toSeries } from "./series.ts";

/** Length of the range when the query names no beginning, seconds: the longest that has the finest steps. */
const USUAL_RANGE_S = 3_599;
const OLDEST_S = Math.max(...STORED_STEPS.map(({ keptFor }) => keptFor));

interface Range {
  readonly start?: number;
  readonly end?: number;
}

export function createUsageHandlers(deps: {
  readonly store: Pick<UsageStore, "samples" | "spans">;
  readonly now: () => number;
}): Handlers<typeof teamMetricsApi, Project> {
  async function points(project: Project, query: Range): Promise<{ readonly step: number; readonly points: Point[] }> {
    const now = Math.floor(deps.now() / 1000);
    const last = query.end ?? now;
    const first = query.start ?? Math.max(0, last - USUAL_RANGE_S);
    if (last < first) throw new AppError("bad_request", "query field 'end' must not be before 'start'");
    const asked = { start: Math.max(first, now - OLDEST_S), end: Math.min(last, now) };
    const { step, stored } = stepsFor(asked, now);
    // The first step counts from its beginning, and the last second to its end.
    const range = { start: slotOf(asked.start, step), end: asked.end + 1 };
    const [rows, spans] = await Promise.all([deps.store.samples(project.id, stored, range), deps.store.spans(range)]);
    return { step, points: toSeries(rows, spans, { ...range, step }) };
  }

  return {
    async teamMetrics({ params, query }, { caller }) {
      own(caller, params.teamID);
      const { step, points: all } = await points(caller, query);
      const iso = timestamps();
      return all.map((point) => ({
        timestamp: iso(point.at),
        timestampUnix: point.at,
        concurrentSandboxes: point.sandboxes,
        sandboxStartRate: rate(point, step),
        cpuUsed: Math.round(point.cpuMs / step) / 1000,
        memUsed: point.memoryBytes,
        diskUsed: point.diskBytes,
        bytesSent: point.sentBytes,
        bytesReceived: point.receivedBytes,
      }));
    },

    async teamMetricsMax({ params, query }, { caller }) {
      own(caller, params.teamID);
      const { step, points: all } = await points(caller, query);
      const value = (point: Point) => (query.metric === "concurrent_sandboxes" ? point.sandboxes : rate(point, step));
      const best = highest(all, value);
      // No sample: the value is 0, at the beginning of the range.
      if (best === undefined) return { ...timeOf({ at: query.start ?? Math.floor(deps.now() / 1000) }), value: 0 };
      return { ...timeOf(best), value: value(best) };
    },
  };
}

/** Starts a second, to a thousandth. */
function rate({ starts }: Pick<Point, "starts">, step: number): number {
  return Math.round((starts * 1000) / step) / 1000;
}

function timeOf({ at }: Pick<Point, "at">) {
  return { timestamp: iso(at * 1000), timestampUnix: at };
}

/** @throws {AppError} forbidden for another project than the caller's. */
function own(caller: Project, teamId: string): void {
  if (!isProject(caller, teamId)) throw new AppError("forbidden", `no access to the metrics of project '${teamId}'`);
}
