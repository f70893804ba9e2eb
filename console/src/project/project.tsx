/** The project: what it may have and uses, its use over time, and its keys. */

import { useState } from "preact/hooks";
import type { teamMetricsApi } from "../../../shared/api/teams.ts";
import { get, type Reply } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { may, projectId } from "../base/session.ts";
import { AuditLog } from "../parts/audit-log.tsx";
import { Choice } from "../parts/field.tsx";
import { Empty, Failure, Screen } from "../parts/parts.tsx";
import { Figure } from "../sandbox/metrics.tsx";
import { Keys } from "./keys.tsx";
import { LimitTable } from "./limits.tsx";
import { MembersOfProject } from "./members.tsx";
import { csvName, isPeriod, PERIODS, type Period, rangeOf } from "./period.ts";
import { totalsOf } from "./totals.ts";

type Metric = Reply<typeof teamMetricsApi.teamMetrics>[number];

export function ProjectScreen() {
  const id = projectId.value ?? "";
  return (
    <Screen title="Project">
      <LimitTable path={`/projects/${id}/limits`} />
      <Use id={id} />
      <Keys />
      {may("admin") && (
        <>
          <MembersOfProject />
          <h2>Who did what</h2>
          <AuditLog path="/audit" label="Audit log of the project" empty="Nothing was changed in this project yet." />
        </>
      )}
    </Screen>
  );
}

function Use({ id }: { readonly id: string }) {
  const [period, setPeriod] = useState<Period>("day");
  const loaded = useLoaded(
    async (signal) => ({
      of: period,
      samples: await get<Metric[]>(`/teams/${id}/metrics`, { ...rangeOf(period, Date.now()) }, signal),
    }),
    [id, period],
    60_000,
  );
  // While another time is read, nothing of the one before is shown or saved under its name.
  const found = loaded.value?.of === period ? loaded.value.samples : undefined;
  const samples = found ?? [];
  const total = totalsOf(samples);
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  return (
    <>
      <h2>Use over time</h2>
      <div class="bar">
        <Choice
          label="Time"
          value={period}
          options={PERIODS}
          onValue={(value) => isPeriod(value) && setPeriod(value)}
        />
        <button type="button" disabled={samples.length === 0} onClick={() => saveCsv(samples, csvName(times))}>
          Save as CSV
        </button>
      </div>
      <Failure of={loaded.error} />
      {found?.length === 0 && <Empty title="The platform has kept no use of this time." />}
      {total !== undefined && <p>In this time: {total}.</p>}
      {samples.length > 0 && (
        <>
          <Figure
            title="Sandboxes at the same time"
            times={times}
            used={samples.map((each) => each.concurrentSandboxes)}
          />
          <Figure title="Processors in use" times={times} used={samples.map(({ cpuUsed }) => cpuUsed)} />
          <Figure title="Memory in use" times={times} used={samples.map(({ memUsed }) => memUsed)} isBytes />
        </>
      )}
    </>
  );
}

/** A browser has read the file by then. */
const SAVING_MS = 60_000;

function saveCsv(samples: readonly Metric[], name: string): void {
  const names = Object.keys(samples[0] ?? {}) as (keyof Metric)[];
  const lines = samples.map((sample) => names.map((name) => String(sample[name])).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([[names.join(","), ...lines, ""].join("\r\n")], { type: "text/csv" }));
  link.download = name;
  link.click();
  // Safari reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), SAVING_MS);
}
