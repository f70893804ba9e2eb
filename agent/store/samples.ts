/** Metric samples of sandboxes, kept for some hours. The only SQL on that table, apart from migrations. */

import type { MetricSample } from "../../shared/agent-api/routes.ts";
import type { Sqlite } from "./database/database.ts";

export interface SampleStore {
  add(samples: ReadonlyMap<string, MetricSample>): void;
  between(executionId: string, start: number, end: number): MetricSample[];
  prune(before: number): void;
}

interface Row {
  execution_id: string;
  at: number;
  cpu_count: number;
  cpu_used_pct: number;
  mem_used: number;
  mem_total: number;
  mem_cache: number;
  disk_used: number;
  disk_total: number;
}

export function sampleStore(database: Sqlite): SampleStore {
  const insert = database.prepare<Row>(`insert into samples values (
    @execution_id, @at, @cpu_count, @cpu_used_pct, @mem_used, @mem_total, @mem_cache, @disk_used, @disk_total)
    on conflict do nothing`);
  const between = database.prepare<[string, number, number], Row>(
    "select * from samples where execution_id = ? and at between ? and ? order by at",
  );
  const prune = database.prepare<[number]>("delete from samples where at < ?");
  return {
    add: database.transaction((samples: ReadonlyMap<string, MetricSample>) => {
      for (const [executionId, sample] of samples) insert.run(toRow(executionId, sample));
    }),
    between: (executionId, start, end) => between.all(executionId, start, end).map(toSample),
    prune: (before) => void prune.run(before),
  };
}

function toRow(executionId: string, sample: MetricSample): Row {
  return {
    execution_id: executionId,
    at: sample.at,
    cpu_count: sample.cpuCount,
    cpu_used_pct: sample.cpuUsedPct,
    mem_used: sample.memUsed,
    mem_total: sample.memTotal,
    mem_cache: sample.memCache,
    disk_used: sample.diskUsed,
    disk_total: sample.diskTotal,
  };
}

function toSample(row: Row): MetricSample {
  return {
    at: row.at,
    cpuCount: row.cpu_count,
    cpuUsedPct: row.cpu_used_pct,
    memUsed: row.mem_used,
    memTotal: row.mem_total,
    memCache: row.mem_cache,
    diskUsed: row.disk_used,
    diskTotal: row.disk_total,
  };
}
