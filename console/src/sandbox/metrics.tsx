/** Processors, memory and disk of the sandbox over its last hour, with its limits drawn in. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { SandboxDetail, SandboxMetric } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get } from "../base/client.ts";
import { bytes } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import type { Chart } from "../parts/chart.ts";
import { loadPart } from "../parts/load-part.ts";
import { Empty, Failure } from "../parts/parts.tsx";
import type { TabProps } from "./tab.ts";
import { whyNoSamples } from "./why-no-samples.ts";

const EVERY_MS = 5_000;
const HOUR_S = 3_600;

export function MetricsTab({ sandbox }: TabProps) {
  const path = `/sandboxes/${sandbox.sandboxID}/metrics`;
  const loaded = useLoaded(
    (signal) => get<SandboxMetric[]>(path, { ended: true, start: startOf(sandbox) }, signal),
    [path],
    EVERY_MS,
  );
  const samples = loaded.value;
  const last = samples?.at(-1);
  if (samples === undefined || last === undefined)
    return (
      <>
        <Failure of={loaded.error} />
        {samples !== undefined && <Empty title={whyNoSamples(sandbox.state)} />}
      </>
    );
  const times = samples.map(({ timestampUnix }) => timestampUnix);
  return (
    <>
      <Failure of={loaded.error} />
      <Figure
        title={`Processors: ${((last.cpuUsedPct * last.cpuCount) / 100).toFixed(2)} of ${last.cpuCount}`}
        times={times}
        used={samples.map(({ cpuUsedPct, cpuCount }) => (cpuUsedPct * cpuCount) / 100)}
        limit={samples.map(({ cpuCount }) => cpuCount)}
      />
      <Figure
        title={`Memory: ${bytes(last.memUsed)} of ${bytes(last.memTotal)}`}
        times={times}
        used={samples.map(({ memUsed }) => memUsed)}
        limit={samples.map(({ memTotal }) => memTotal)}
        isBytes
      />
      <Figure
        title={`Disk: ${bytes(last.diskUsed)} of ${bytes(last.diskTotal)}`}
        times={times}
        used={samples.map(({ diskUsed }) => diskUsed)}
        limit={samples.map(({ diskTotal }) => diskTotal)}
        isBytes
      />
    </>
  );
}

/** An hour before now, or before its end; undefined: from its start on. */
function startOf({ startedAt, endedAt }: SandboxDetail): number | undefined {
  const start = Math.floor((endedAt === undefined ? Date.now() : Date.parse(endedAt)) / 1000) - HOUR_S;
  return start * 1000 > Date.parse(startedAt) ? start : undefined;
}

export function Figure(props: {
  readonly title: string;
  readonly times: readonly number[];
  readonly used: readonly number[];
  readonly limit?: readonly number[];
  readonly isBytes?: boolean;
}) {
  const { title, times, used, limit, isBytes = false } = props;
  const [error, setError] = useState<unknown>(undefined);
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | undefined>(undefined);
  const data = useRef({ times, used, limit });
  data.current = { times, used, limit };
  useEffect(() => {
    const left = { is: false };
    loadPart(() => import("../parts/chart.ts"))
      .then(({ drawChart }) => {
        if (left.is || place.current === null) return;
        chart.current = drawChart(place.current, isBytes ? bytes : String);
        chart.current.show(data.current);
      })
      .catch((failed: unknown) => setError(failed));
    return () => {
      left.is = true;
      chart.current?.remove();
    };
  }, [isBytes]);
  useEffect(() => chart.current?.show(data.current));
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <Failure of={error} />
      <div ref={place} role="img" aria-label={title} />
    </figure>
  );
}
