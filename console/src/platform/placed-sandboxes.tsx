/** Sandboxes of a node, or of a project, for operators. */

import type { adminSandboxApi } from "../../../shared/api/projects/all-sandboxes.ts";
import { get, type Reply } from "../base/client.ts";
import { span, time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, State, Table } from "../parts/parts.tsx";

type Placed = Reply<typeof adminSandboxApi.listAllSandboxes>[number];

const NEWEST = 100;

/** To look into one its project is chosen first. */
export function PlacedSandboxes({
  label,
  query,
}: {
  readonly label: string;
  readonly query: { readonly nodeID: string } | { readonly teamID: string };
}) {
  const loaded = useLoaded(
    (signal) => get<Placed[]>("/admin/sandboxes", { ...query, limit: NEWEST }, signal),
    [JSON.stringify(query)],
    5_000,
  );
  const isOfNode = "nodeID" in query;
  return (
    <>
      <Failure of={loaded.error} />
      {loaded.value?.length === 0 && <p class="small">There is none.</p>}
      {loaded.value?.length === NEWEST && <p class="small">The newest {NEWEST} are shown.</p>}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label={label}
          items={loaded.value}
          keyOf={({ sandboxID }) => sandboxID}
          columns={[
            { name: "Sandbox", show: ({ sandboxID }) => <code>{sandboxID}</code> },
            isOfNode
              ? { name: "Project", show: ({ projectName, teamID }) => projectName ?? teamID }
              : { name: "Node", show: ({ nodeID }) => nodeID },
            { name: "State", show: ({ state }) => <State of={state} /> },
            { name: "Template", show: ({ templateID }) => templateID },
            { name: "Age", show: ({ ageSeconds }) => span(ageSeconds * 1000) },
            { name: "Ends", show: ({ endAt }) => time(endAt) },
          ]}
        />
      )}
    </>
  );
}
