/** Snapshots of the sandbox: taken here, and sandboxes started from them. */

import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Sandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { snapshotApi } from "../../../shared/api/snapshots.ts";
import { act, get, type Reply } from "../base/client.ts";
import { bytes } from "../base/format.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Table } from "../parts/parts.tsx";
import type { TabProps } from "./tab.ts";

export type Snapshot = Reply<typeof snapshotApi.listSnapshots>[number];

export function SnapshotsTab({ sandbox }: TabProps) {
  const { sandboxID: id, state } = sandbox;
  const [name, setName] = useState("");
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<Snapshot[]>("/snapshots", { sandboxID: id, limit: 100 }, signal), [id]);
  const take = () =>
    doing.run(async () => {
      await act("POST", `/sandboxes/${id}/snapshots`, name === "" ? {} : { name });
      setName("");
      loaded.again();
    });
  return (
    <>
      {state === "running" && (
        <form class="bar" onSubmit={onSubmit(take)}>
          <TextField label="Name (may be empty)" value={name} onValue={setName} />
          <button type="submit" disabled={doing.busy || !may("sandboxes")}>
            Take a snapshot
          </button>
        </form>
      )}
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && <Empty title="No snapshot was taken of this sandbox." />}
      {loaded.value !== undefined && <SnapshotTable items={loaded.value} again={loaded.again} />}
    </>
  );
}

export function SnapshotTable({ items, again }: { readonly items: readonly Snapshot[]; readonly again: () => void }) {
  const doing = useDoing();
  const [, go] = useLocation();
  const start = (snapshotID: string) =>
    doing.run(async () => {
      const made = await act<Sandbox>("POST", "/v2/sandboxes", { templateID: snapshotID });
      go(`/sandboxes/${made.sandboxID}`);
    });
  const remove = (snapshotID: string) =>
    doing.run(async () => {
      await act("DELETE", `/templates/${encodeURIComponent(snapshotID)}`);
      again();
    });
  const disabled = doing.busy || !may("sandboxes");
  if (items.length === 0) return <Failure of={doing.error} />;
  return (
    <>
      <Failure of={doing.error} />
      <Table
        label="Snapshots"
        items={items}
        keyOf={({ snapshotID }) => snapshotID}
        columns={[
          { name: "Snapshot", show: ({ snapshotID }) => <code>{snapshotID}</code> },
          { name: "Names", show: ({ names }) => names.join(", ") || "–" },
          { name: "Stored", show: ({ storedBytes }) => (storedBytes === undefined ? "–" : bytes(storedBytes)) },
          {
            name: "Acts",
            show: ({ snapshotID }) => (
              <span class="acts">
                <button
                  type="button"
                  disabled={disabled}
                  aria-label={`Start from it: ${snapshotID}`}
                  onClick={() => start(snapshotID)}
                >
                  Start from it
                </button>
                <Danger disabled={disabled} label={`Delete ${snapshotID}`} onConfirm={() => remove(snapshotID)}>
                  Delete
                </Danger>
              </span>
            ),
          },
        ]}
      />
    </>
  );
}
