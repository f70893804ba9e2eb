/** The drain of a node: how it is begun, and how far it is, with each sandbox. */

import { useState } from "preact/hooks";
import type { Drain } from "../../../shared/api/nodes/drains.ts";
import { act, get } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { span, time } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { Choice, onSubmit, TextField } from "../parts/field.tsx";
import { Failure, State, Table } from "../parts/parts.tsx";

const EVERY_MS = 2_000;

interface DrainOfNodeProps {
  readonly id: string;
  /** The node takes work: it has no drain that could be asked for. */
  readonly takesWork: boolean;
  readonly again: () => void;
}

export function DrainOfNode({ id, takesWork, again }: DrainOfNodeProps) {
  const path = `/nodes/${encodeURIComponent(id)}/drain`;
  const [running, setRunning] = useState("move");
  const [atDeadline, setAtDeadline] = useState("stay");
  const [minutes, setMinutes] = useState("");
  const doing = useDoing();
  const loaded = useLoaded(
    (signal) => (takesWork ? Promise.resolve(null) : drainOf(path, signal)),
    [path, takesWork],
    EVERY_MS,
  );
  const begin = () =>
    doing.run(async () => {
      const deadline = minutes === "" ? {} : { deadlineSeconds: Math.round(Number(minutes) * 60) };
      await act("POST", path, { running, atDeadline, ...deadline });
      loaded.again();
      again();
    });
  return (
    <section aria-label={`Drain of ${id}`}>
      <h2>Drain of {id}</h2>
      <form class="bar" onSubmit={onSubmit(begin)}>
        <Choice
          label="Running sandboxes"
          value={running}
          options={[
            ["move", "go to other nodes, with their memory"],
            ["finish", "run until their end"],
          ]}
          onValue={setRunning}
        />
        <TextField label="Deadline in minutes (may be none)" type="number" value={minutes} onValue={setMinutes} />
        <Choice
          label="At the deadline"
          value={atDeadline}
          options={[
            ["stay", "what is left stays"],
            ["kill", "what is left is killed"],
          ]}
          onValue={setAtDeadline}
        />
        <button type="submit" disabled={doing.busy}>
          Begin the drain
        </button>
      </form>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value === null && <p class="small">This node was not drained yet.</p>}
      {loaded.value !== undefined && loaded.value !== null && <Progress of={loaded.value} />}
    </section>
  );
}

function Progress({ of: drain }: { readonly of: Drain }) {
  const { state, begunAt, endedAt, deadlineAt, sandboxes } = drain;
  const done = sandboxes.filter((each) => !["waiting", "moving", "stays"].includes(each.state)).length;
  return (
    <>
      <p role="status">
        <State of={state} /> {done} of {sandboxes.length} sandboxes are off the node; begun {time(begunAt)}
        {deadlineAt !== null && `, deadline ${time(deadlineAt)}`}
        {endedAt !== null && `, ended ${time(endedAt)}`}
      </p>
      <progress value={done} max={Math.max(1, sandboxes.length)} aria-label="Sandboxes that are off the node" />
      {sandboxes.length > 0 && (
        <Table
          label="Sandboxes of the drain"
          items={sandboxes}
          keyOf={({ sandboxID }) => sandboxID}
          columns={[
            { name: "Sandbox", show: ({ sandboxID }) => <code>{sandboxID}</code> },
            { name: "Was", show: ({ was }) => was },
            { name: "Now", show: (each) => <State of={each.state} /> },
            { name: "To", show: ({ toNodeID }) => toNodeID ?? "–" },
            { name: "Stood still", show: ({ stallMs }) => (stallMs === null ? "–" : span(stallMs)) },
            { name: "When", show: ({ at }) => time(at) },
            { name: "Why not yet", show: ({ reason }) => reason ?? "–" },
          ]}
        />
      )}
    </>
  );
}

/** Null: the node was never drained. */
async function drainOf(path: string, signal: AbortSignal): Promise<Drain | null> {
  try {
    return await get<Drain>(path, {}, signal);
  } catch (error) {
    if (error instanceof Failed && error.status === 404) return null;
    throw error;
  }
}
