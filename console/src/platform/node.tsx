/** One node: facts, what it can do as it has found by trying, its findings, and the sandboxes on it. */

import type { NodeDetail, NodeRead } from "../../../shared/api/nodes/nodes.ts";
import { get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, Table } from "../parts/parts.tsx";
import { abilitiesOf, nodeFacts } from "./node-facts.ts";
import { PlacedSandboxes } from "./placed-sandboxes.tsx";

export function Details({ of: node }: { readonly of: NodeDetail }) {
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
      <h3>What it can do</h3>
      <Table
        label={`What ${node.id} can do`}
        items={abilitiesOf(node.capabilities)}
        keyOf={({ name }) => name}
        columns={[
          { name: "What", show: ({ name }) => name },
          { name: "Found", show: ({ found }) => found },
          { name: "How it is known, or why not", show: ({ why }) => why },
        ]}
      />
      <h3>Findings</h3>
      <Findings of={[node]} />
      <h3>What happened to it</h3>
      <EventsOf id={node.id} />
      <h3>Sandboxes on it</h3>
      <PlacedSandboxes label={`Sandboxes on ${node.id}`} query={{ nodeID: node.id }} />
    </section>
  );
}

/** What stands in the way of sandboxes, on any of the nodes. */
export function Findings({ of: nodes }: { readonly of: readonly NodeDetail[] }) {
  const all = nodes.flatMap(({ id: node, findings }) => findings.map((finding) => ({ node, ...finding })));
  const [only, ...others] = nodes;
  const whose = only === undefined || others.length > 0 ? "nodes" : only.id;
  if (all.length === 0) return <p class="small">{whose === "nodes" ? "No node has a finding." : "It has none."}</p>;
  return (
    <Table
      label={`Findings of ${whose}`}
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
  );
}

/** The same at each orchestrator. One of an earlier version keeps none. */
function EventsOf({ id }: { readonly id: string }) {
  const loaded = useLoaded(
    (signal) => get<Partial<NodeRead>>(`/nodes/${encodeURIComponent(id)}`, {}, signal),
    [id],
    5_000,
  );
  const events = loaded.value?.events;
  return (
    <>
      <Failure of={loaded.error} />
      {events === null && <p class="small">The database does not answer now.</p>}
      {loaded.value !== undefined && (events === undefined || events?.length === 0) && (
        <p class="small">Nothing is kept of it yet.</p>
      )}
      {events !== undefined && events !== null && events.length > 0 && (
        <Table
          label={`What happened to ${id}`}
          items={events}
          keyOf={({ at, kind, detail }) => [at, kind, detail].join(" ")}
          columns={[
            { name: "When", show: ({ at }) => time(at) },
            { name: "What", show: ({ kind }) => kind.replaceAll("_", " ") },
            { name: "More", show: ({ detail }) => detail ?? "" },
          ]}
        />
      )}
    </>
  );
}
