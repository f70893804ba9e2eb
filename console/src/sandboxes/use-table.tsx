/** What the listed sandboxes use now, those with most memory first. */

import { useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import type { SandboxMetric } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get } from "../base/client.ts";
import { bytes } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Empty, Failure, Table } from "../parts/parts.tsx";
import type { Filter } from "./filter.ts";
import { heaviest } from "./heaviest.ts";
import type { SandboxRow } from "./live.ts";

/** Sandboxes that are asked about, and ids that one request takes. */
const MOST = 500;
const AT_ONCE = 100;
const SHOWN = 20;
const EVERY_MS = 10_000;

/** @param filter which sandboxes these are: another one is asked about at once, and a change of the list with the next look */
export function UseTable({ of: listed, filter }: { readonly of: readonly SandboxRow[]; readonly filter: Filter }) {
  const running = listed.filter(({ state }) => state === "running").map(({ sandboxID }) => sandboxID);
  const ids = useRef(running);
  ids.current = running.slice(0, MOST);
  const loaded = useLoaded(
    async (signal) => heaviest(await metricsOf(ids.current, signal), SHOWN),
    [JSON.stringify(filter)],
    EVERY_MS,
  );
  return (
    <>
      <Failure of={loaded.error} />
      {running.length > MOST && <p class="small">The newest {MOST} are looked at. The filter finds others.</p>}
      {loaded.value?.length === 0 && <Empty title="No sandbox that is listed runs and has been measured yet." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Use of memory"
          items={loaded.value}
          keyOf={([id]) => id}
          columns={[
            { name: "Sandbox", show: ([id]) => <Link href={`/sandboxes/${id}/metrics`}>{id}</Link> },
            { name: "Memory", show: ([, { memUsed, memTotal }]) => `${bytes(memUsed)} of ${bytes(memTotal)}` },
            {
              name: "Processors",
              show: ([, { cpuUsedPct, cpuCount }]) => `${((cpuUsedPct * cpuCount) / 100).toFixed(2)} of ${cpuCount}`,
            },
            { name: "Disk", show: ([, { diskUsed, diskTotal }]) => `${bytes(diskUsed)} of ${bytes(diskTotal)}` },
          ]}
        />
      )}
    </>
  );
}

async function metricsOf(ids: readonly string[], signal: AbortSignal): Promise<Record<string, SandboxMetric>> {
  const all: Record<string, SandboxMetric> = {};
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const query = { sandbox_ids: ids.slice(from, from + AT_ONCE).join(",") };
    const answer = await get<{ readonly sandboxes: Record<string, SandboxMetric> }>(
      "/sandboxes/metrics",
      query,
      signal,
    );
    Object.assign(all, answer.sandboxes);
  }
  return all;
}
