/** The doctor's report of one node: its agent runs the checks of `svc doctor` on its machine when this opens, and when asked again. */

import { useState } from "preact/hooks";
import type { MachineReport } from "../../../shared/api/nodes/doctor.ts";
import { get } from "../base/client.ts";
import { time } from "../base/format.ts";
import { useLoaded } from "../base/loaded.ts";
import { Failure, State, Table } from "../parts/parts.tsx";
import { type Read, readReport } from "./doctor-report.ts";

export function DoctorOfNode({ id }: { readonly id: string }) {
  const [round, setRound] = useState(0);
  return (
    <section aria-label={`Doctor’s report of ${id}`}>
      <h2>Doctor’s report of {id}</h2>
      <div class="bar">
        <button type="button" onClick={() => setRound((count) => count + 1)}>
          Look again
        </button>
      </div>
      <Report key={round} id={id} />
    </section>
  );
}

function Report({ id }: { readonly id: string }) {
  const path = `/nodes/${encodeURIComponent(id)}/doctor`;
  const load = (signal: AbortSignal) => get<MachineReport>(path, {}, signal);
  const { value: report, error } = useLoaded(load, [path], "when asked");
  if (error !== undefined)
    return (
      <>
        <Failure of={error} />
        <p class="small">
          There is no report of this machine. <code>sudo ./scripts/svc doctor</code> on it makes one, also while its
          programs are down.
        </p>
      </>
    );
  if (report === undefined)
    return (
      <p role="status" class="small">
        The agent of {id} looks at its machine. This takes some seconds, and up to a minute where something hangs.
      </p>
    );
  const { wrong, unseen, passed, summary } = readReport(report);
  return (
    <>
      <p role="status">
        {summary}; looked at {time(report.at)}.
      </p>
      {wrong.length > 0 && (
        <Table
          label={`What is wrong on ${id}`}
          items={wrong.map((each, index) => ({ ...each, index }))}
          keyOf={({ index }) => String(index)}
          columns={[
            { name: "State", show: ({ status }) => <State of={status} /> },
            { name: "Check", show: ({ id: name }) => <code>{name}</code> },
            { name: "Problem", show: ({ problem }) => problem },
            { name: "What was seen", show: ({ evidence }) => evidence },
            { name: "Way out", show: ({ wayOut }) => wayOut },
          ]}
        />
      )}
      {unseen.length > 0 && (
        <details>
          <summary>What could not be seen from this machine</summary>
          <p class="small">
            This is no failure. A node without an orchestrator beside it does not see the records, for example, and the
            agent of a service of systemd cannot try CRIU: “Findings” have what it knows of that.
          </p>
          <Names of={unseen} />
        </details>
      )}
      {passed.length > 0 && (
        <details>
          <summary>What passed</summary>
          <Names of={passed} />
        </details>
      )}
    </>
  );
}

function Names({ of: checks }: { readonly of: Read["passed"] }) {
  return <p class="small">{checks.map(({ section, id }) => `${section}: ${id}`).join(", ")}</p>;
}
