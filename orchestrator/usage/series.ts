/** Makes the answer to a query from stored samples. Pure. */

import type { StoredSample } from "../store/usage/row.ts";
import type { Sample } from "../store/usage/sample.ts";
import { slotOf } from "../store/usage/steps.ts";
import type { Span } from "../store/usage/usage.ts";

export interface Point extends Sample {
  /** Beginning of its step, Unix seconds. */
  readonly at: number;
}

interface Asked {
  /** Unix seconds; `end` is not included. */
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

type Sum = { -readonly [K in keyof Point]: Point[K] };

/**
 * One point for each step in which samples were taken: without a sample of the project it used nothing then. Steps in which
 * the platform did not run have no point.
 * @param rows oldest first; two may be of the same step
 */
export function toSeries(rows: readonly StoredSample[], spans: readonly Span[], { start, end, step }: Asked): Point[] {
  const points: Point[] = [];
  let next = slotOf(start, step);
  let index = 0;
  for (const span of spans) {
    next = Math.max(next, slotOf(span.began, step));
    for (; next < Math.min(span.until, end); next += step) {
      const sum = nothing(next);
      for (let row = rows[index]; row !== undefined && row.at < next + step; row = rows[++index]) {
        if (row.at >= next) add(sum, row);
      }
      points.push(sum);
    }
  }
  return points;
}

function nothing(at: number): Sum {
  return { at, sandboxes: 0, starts: 0, cpuMs: 0, memoryBytes: 0, diskBytes: 0, sentBytes: 0, receivedBytes: 0 };
}

// Changes the sum in place: an answer has up to 8 640 of them.
function add(sum: Sum, row: StoredSample): void {
  sum.sandboxes = Math.max(sum.sandboxes, row.sandboxes);
  sum.starts += row.starts;
  sum.cpuMs += row.cpu_ms;
  sum.memoryBytes = Math.max(sum.memoryBytes, row.memory_bytes);
  sum.diskBytes = Math.max(sum.diskBytes, row.disk_bytes);
  sum.sentBytes += row.sent_bytes;
  sum.receivedBytes += row.received_bytes;
}

/** The first of the highest points; undefined without points. */
export function highest(points: readonly Point[], value: (point: Point) => number): Point | undefined {
  let best: Point | undefined;
  for (const point of points) if (best === undefined || value(point) > value(best)) best = point;
  return best;
}

const DAY_S = 86_400;

/** Formats times as RFC 3339, for many of the same days. */
export function timestamps(): (unixSeconds: number) => string {
  const days = new Map<number, string>();
  const times = new Map<number, string>();
  const part = (parts: Map<number, string>, key: number, make: () => string) => {
    const known = parts.get(key);
    if (known !== undefined) return known;
    const made = make();
    parts.set(key, made);
    return made;
  };
  return (at) => {
    const second = at % DAY_S;
    const day = part(days, at - second, () => new Date(at * 1000).toISOString().slice(0, 11));
    return day + part(times, second, () => new Date(second * 1000).toISOString().slice(11));
  };
}
