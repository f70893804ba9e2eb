/** The nodes of the platform: what is promised and used, and who takes no new sandbox. */

import { useState } from "preact/hooks";
import type { NodeDetail } from "../../../shared/api/nodes/nodes.ts";
import { act, get } from "../base/client.ts";
import { bytes } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { Danger, Empty, Failure, State, Table } from "../parts/parts.tsx";
import { DrainOfNode } from "./drain.tsx";
import { nodeFacts } from "./node-facts.ts";

export function Nodes() {
  const [chosen, choose] = useState<string | undefined>(undefined);
  const [looked, look] = useState<string | undefined>(undefined);
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
      <h2>Nodes</h2>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && <Empty title="No node has reported: ./scripts/service log agent tells why." />}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Nodes"
          items={loaded.value}
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
      {loaded.value !== undefined && <Findings of={loaded.value} />}
      {node !== undefined && <Details of={node} />}
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

/** What stands in the way of sandboxes, on any node. */
function Findings({ of: nodes }: { readonly of: readonly NodeDetail[] }) {
  const all = nodes.flatMap(({ id: node, findings }) => findings.map((finding) => ({ node, ...finding })));
  if (all.length === 0) return <p class="small">No node has a finding.</p>;
  return (
    <>
      <h2>Findings of nodes</h2>
      <Table
        label="Findings of nodes"
        items={all}
        keyOf={({ node, id, evidence }) => [node, id, evidence].join(" ")}
        columns={[
          { name: "Node", show: ({ node }) => node },
          { name: "Finding", show: ({ id }) => <code>{id}</code> },
          { name: "Problem", show: ({ problem }) => problem },
          { name: "What was seen", show: ({ evidence }) => evidence },
          { name: "Way out", show: ({ wayOut }) => wayOut },
        ]}
      />
    </>
  );
}

function Details({ of: node }: { readonly of: NodeDetail }) {
  return (
    <section aria-label={`Details of ${node.id}`}>
      <h2>{node.id}</h2>
      <dl class="facts">
        {nodeFacts(node, Date.now()).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
