/** Puts the sandbox back to one of its snapshots, after it has said what is lost. */

import { useState } from "preact/hooks";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { perform } from "../../base/client.ts";
import { useDoing } from "../../base/loaded.ts";
import { AsCode } from "../../code/as-code.tsx";
import { CheckField } from "../../parts/field.tsx";
import { Failure } from "../../parts/parts.tsx";
import { requests } from "../../sandboxes/requests.ts";
import type { Snapshot } from "./lineage.ts";
import { consequencesOf } from "./states.ts";

interface RewindProps {
  readonly sandbox: SandboxDetail;
  readonly to: Snapshot;
  readonly snapshots: readonly Snapshot[];
  readonly close: () => void;
  /** The sandbox runs as it was then. */
  readonly done: () => void;
}

export function Rewind({ sandbox, to, snapshots, close, done }: RewindProps) {
  const { sandboxID: id, state } = sandbox;
  const [keep, setKeep] = useState(true);
  const doing = useDoing();
  const { lost, kept } = consequencesOf({ sandbox, to, snapshots, now: Date.now() });
  const request = requests.rewind(id, to.snapshotID);
  const rewind = () =>
    doing.run(async () => {
      if (keep && state === "running") await perform(requests.snapshot(id, ""));
      await perform(request);
      done();
    });
  return (
    <section class="asking" aria-label={`Rewind to ${to.snapshotID}`}>
      <p class="strong">Put this sandbox back to {to.snapshotID}?</p>
      <Sentences title="Lost" of={lost} />
      <Sentences title="Kept" of={kept} />
      {state === "running" && (
        <CheckField label="Take a snapshot of the present state before" checked={keep} onChecked={setKeep} />
      )}
      <div class="acts">
        <button type="button" class="danger" disabled={doing.busy} onClick={rewind}>
          {doing.busy ? "Rewinding…" : "Rewind the sandbox"}
        </button>
        <button type="button" disabled={doing.busy} onClick={close}>
          Leave it as it is
        </button>
      </div>
      <Failure of={doing.error} />
      <AsCode of={request} />
    </section>
  );
}

function Sentences({ title, of: sentences }: { readonly title: string; readonly of: readonly string[] }) {
  return (
    <>
      <p class="small">{title}</p>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </>
  );
}
