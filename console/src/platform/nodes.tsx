/** The nodes of the platform: what is promised and used, and who takes no new sandbox. */

import { useState } from "preact/hooks";
import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import { act, get } from "../base/client.ts";
import { bytes } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { Danger, Empty, Failure, State, Table } from "../parts/parts.tsx";
import { type Alert, alertsOf } from "./alerts.ts";
import { DoctorOfNode } from "./doctor.tsx";
import { DrainOfNode } from "./drain.tsx";
import { Details, Findings } from "./node.tsx";
import { mostTaken } from "./node-facts.ts";

export function Nodes() {
  const [chosen, choose] = useState<string | undefined>(undefined);
  const [looked, look] = useState<string | undefined>(undefined);
  const [examined, examine] = useState<string | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<NodeDetail[]>("/nodes", {}, signal), [], 5_000);
  const set = (id: string, status: string) =>
    doing.run(async () => {
      await act("POST", `/nodes/${encodeURIComponent(id)}`, { status });
      loaded.again();
    });
  const node = loaded.value?.find(({ id }) => id === looked);
  return (
    <>
      <h2>Alerts</h2>
      {loaded.value !== undefined && <Alerts of={alertsOf(loaded.value, Date.now())} />}
      <h2>Nodes</h2>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && <Empty title="No node has reported: ./scripts/service log agent tells why." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Nodes"
          items={loaded.value.toSorted((a, b) => mostTaken(b).share - mostTaken(a).share)}
          keyOf={({ id }) => id}
          columns={[
            { name: "Node", show: ({ id }) => id },
            { name: "State", show: ({ status }) => <State of={status} /> },
            { name: "Sandboxes", show: ({ sandboxCount, maxSandboxes }) => `${sandboxCount} of ${maxSandboxes}` },
            {
              name: "Cores: promised / used",
              show: ({ metrics }) =>
                `${metrics.allocatedCPU} / ${((metrics.cpuPercent * metrics.cpuCount) / 100).toFixed(1)} of ${metrics.cpuCount}`,
            },
            {
              name: "Memory: promised / used",
              show: ({ metrics }) =>
                `${bytes(metrics.allocatedMemoryBytes)} / ${bytes(metrics.memoryUsedBytes)} of ${bytes(metrics.memoryTotalBytes)}`,
            },
            {
              name: "Most taken",
              show: (each) => {
                const { what, share } = mostTaken(each);
                return `${Math.round(share * 100)} % ${what}`;
              },
            },
            { name: "Disk free", show: ({ metrics }) => bytes(metrics.diskFreeBytes) },
            { name: "Version", show: ({ version }) => version },
            { name: "Findings", show: ({ findings }) => findings.length },
            {
              name: "Clock",
              show: ({ clockSkewMs }) =>
                clockSkewMs === null ? "–" : `${clockSkewMs > 0 ? "+" : ""}${clockSkewMs} ms`,
            },
            {
              name: "Acts",
              show: ({ id, status }) => (
                <span class="acts">
                  {status === "draining" ? (
                    <button type="button" disabled={doing.busy} onClick={() => set(id, "ready")}>
                      Take it back
                    </button>
                  ) : (
                    <Danger disabled={doing.busy} label={`Cordon ${id}`} onConfirm={() => set(id, "draining")}>
                      Cordon
                    </Danger>
                  )}
                  <button
                    type="button"
                    aria-pressed={id === looked}
                    aria-label={`Details of ${id}`}
                    onClick={() => look(id === looked ? undefined : id)}
                  >
                    Details
                  </button>
                  <button
                    type="button"
                    aria-pressed={id === examined}
                    aria-label={`Doctor’s report of ${id}`}
                    onClick={() => examine(id === examined ? undefined : id)}
                  >
                    Doctor
                  </button>
                  <button
                    type="button"
                    aria-pressed={id === chosen}
                    aria-label={`Drain of ${id}`}
                    onClick={() => choose(id === chosen ? undefined : id)}
                  >
                    Drain
                  </button>
                </span>
              ),
            },
          ]}
        />
      )}
      {loaded.value !== undefined && (
        <>
          <p class="small">
            A node that is cordoned gets no new sandboxes, and keeps those that it has. A drain takes those to other
            nodes, too, and shows how far it is.
          </p>
          <h2>Findings of nodes</h2>
          <Findings of={loaded.value} />
          <p class="small">
            Nodes find these while they run. “Doctor” has a node look at its machine: its files, kernel, Docker,
            firewall and certificates, the cause first. <code>sudo ./scripts/svc doctor</code> there does it too, also
            while the programs are down.
          </p>
        </>
      )}
      {node !== undefined && <Details of={node} />}
      {examined !== undefined && loaded.value?.some(({ id }) => id === examined) === true && (
        <DoctorOfNode key={examined} id={examined} />
      )}
      {chosen !== undefined && (
        <DrainOfNode
          key={chosen}
          id={chosen}
          takesWork={loaded.value?.find(({ id }) => id === chosen)?.status === "ready"}
          again={loaded.again}
        />
      )}
    </>
  );
}

/** What somebody has to look at, by the names of the alerts for Prometheus. */
function Alerts({ of: alerts }: { readonly of: readonly Alert[] }) {
  if (alerts.length === 0) return <p class="small">Nothing that the nodes report is an alert.</p>;
  return (
    <Table
      label="Alerts"
      items={alerts}
      keyOf={({ name, node, what }) => [name, node, what].join(" ")}
      columns={[
        { name: "Alert", show: ({ name }) => <code>{name}</code> },
        { name: "Severity", show: ({ severity }) => <State of={severity} /> },
        { name: "Node", show: ({ node }) => node ?? "all" },
        { name: "What", show: ({ what }) => what },
      ]}
    />
  );
}
