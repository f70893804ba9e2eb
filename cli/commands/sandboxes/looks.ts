/** Logs and metrics of a sandbox, and the addresses of its ports. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Item, Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { usage } from "../../failure.ts";
import { hostOf } from "../../inside/address.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { patient, showList } from "../../output/watch.ts";

type Entry = Reply<"GET /v2/sandboxes/{sandboxID}/logs">["logs"][number];
type Metric = Item<"GET /sandboxes/{sandboxID}/metrics">;

const POLL_MS = 1_000;
const MOST = 1_000;

export const logs: Action = async ({ api, out, signal }, { first: sandboxID }, options) => {
  const connection = await api();
  const filters = {
    ...(options.level === undefined ? {} : { level: options.level }),
    ...(options.search === undefined ? {} : { search: options.search }),
  };
  const read = async (query: object) => {
    const { logs } = await connection.call("GET /v2/sandboxes/{sandboxID}/logs", {
      params: { sandboxID },
      query: { ...filters, ...query },
    });
    return logs;
  };
  const show = async (entries: readonly Entry[]) => {
    if (await out.structured(entries, options)) return;
    await out.line(...entries.map(logLine));
  };
  const { limit = MOST } = options;
  if (limit < 1 || limit > MOST) throw usage(`--limit is 1 to ${MOST}`);
  const newest = await read({ direction: "backward", limit });
  if (newest.length === MOST)
    out.note(`only the newest ${MOST} lines are shown: --search and --level leave others out`);
  const first = newest.toReversed();
  if (first.length > 0 || options.output !== undefined) await show(first);
  if (options.follow !== true) return;
  const asked = patient({ out, signal });
  let last = first.at(-1);
  for (let isOver = false; ; ) {
    await sleep(POLL_MS, undefined, { signal });
    const from = last === undefined ? {} : { cursor: Date.parse(last.timestamp) };
    const entries = await asked(() => read({ direction: "forward", limit: MOST, ...from }));
    if (entries === undefined) continue;
    const fresh = after(entries, last);
    if (fresh.length > 0) {
      await show(fresh);
      last = fresh.at(-1);
      continue;
    }
    // Its last lines are read after its end.
    if (isOver) return;
    const query = { ended: true };
    const sandbox = await asked(() => connection.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query }));
    isOver = sandbox?.state === "ended";
  }
};

/** A cursor is inclusive and counts milliseconds: what was shown before is left out. */
function after(entries: readonly Entry[], last: Entry | undefined): readonly Entry[] {
  if (last === undefined) return entries;
  const shown = entries.findLastIndex(
    ({ timestamp, message, level }) => timestamp === last.timestamp && message === last.message && level === last.level,
  );
  return entries.slice(shown + 1);
}

function logLine({ timestamp, level, message, fields }: Entry): string {
  const more = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
  return `${timestamp} ${level.toUpperCase().padEnd(5)} ${message}${more.join("")}`;
}

const metricView: View<Metric> = {
  name: ({ timestamp }) => `metric/${timestamp}`,
  columns: [
    { title: "TIME", of: ({ timestamp }) => timestamp },
    { title: "AGE", of: ({ timestamp }) => age(timestamp), moving: true },
    { title: "CPU", of: ({ cpuUsedPct, cpuCount }) => `${cpuUsedPct.toFixed(1)}% of ${cpuCount}` },
    { title: "MEMORY", of: ({ memUsed, memTotal }) => `${bytes(memUsed)} of ${bytes(memTotal)}` },
    { title: "CACHE", of: ({ memCache }) => bytes(memCache), wide: true },
    { title: "DISK", of: ({ diskUsed, diskTotal }) => `${bytes(diskUsed)} of ${bytes(diskTotal)}` },
  ],
};

export const metrics: Action = async (context, { first: sandboxID }, options) => {
  const api = await context.api();
  await showList(context, options, metricView, () => {
    const start = Math.floor(Date.now() / 1000) - (options.since ?? 300);
    return api.call("GET /sandboxes/{sandboxID}/metrics", { params: { sandboxID }, query: { start, ended: true } });
  });
};

export const url: Action = async ({ settings, api, out }, { first: sandboxID, second }) => {
  const port = Number(second);
  if (!/^\d{1,5}$/.test(second) || port < 1 || port > 65_535) throw usage(`'${second}' is no port`);
  const connection = await api();
  const { domain } = await connection.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: {} });
  await out.line(hostOf(await settings(), { sandboxID, domain: domain ?? undefined, port }));
};
