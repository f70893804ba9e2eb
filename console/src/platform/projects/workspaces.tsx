/** Workspaces, which group projects: made, renamed, and deleted when they have none. */

import { useState } from "preact/hooks";
import type { Project, Workspace } from "../../../../shared/api/projects/projects.ts";
import { act } from "../../base/client.ts";
import { time } from "../../base/format.ts";
import { type Loaded, useDoing } from "../../base/loaded.ts";
import { onSubmit, TextField } from "../../parts/field.tsx";
import { Danger, Failure, Table } from "../../parts/parts.tsx";

export function Workspaces({
  loaded,
  projects,
}: {
  readonly loaded: Loaded<readonly Workspace[]>;
  readonly projects: readonly Project[];
}) {
  const [name, setName] = useState("");
  const doing = useDoing();
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      setName("");
      loaded.again();
    });
  const countOf = (id: string) => projects.filter(({ workspaceID }) => workspaceID === id).length;
  const workspaces = loaded.value ?? [];
  return (
    <>
      <h3>Workspaces</h3>
      <Failure of={loaded.error ?? doing.error} />
      {workspaces.length > 0 && (
        <Table
          label="Workspaces"
          items={workspaces}
          keyOf={({ workspaceID }) => workspaceID}
          columns={[
            { name: "Name", show: (each) => (each.isDefault ? `${each.name} (the default one)` : each.name) },
            { name: "Projects", show: ({ workspaceID }) => countOf(workspaceID) },
            { name: "Id", show: ({ workspaceID }) => <code>{workspaceID}</code> },
            { name: "Since", show: ({ createdAt }) => time(createdAt) },
            {
              name: "Acts",
              show: (each) => (
                <span class="acts">
                  <button
                    type="button"
                    disabled={doing.busy || name.trim() === ""}
                    aria-label={`Rename the workspace ${each.name}`}
                    onClick={() => then(() => act("PATCH", `/admin/workspaces/${each.workspaceID}`, { name }))}
                  >
                    Rename
                  </button>
                  <Danger
                    disabled={doing.busy || each.isDefault || countOf(each.workspaceID) > 0}
                    label={`Delete the workspace ${each.name}`}
                    onConfirm={() => then(() => act("DELETE", `/admin/workspaces/${each.workspaceID}`))}
                  >
                    Delete
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
      <form
        class="bar"
        aria-label="New workspace"
        onSubmit={onSubmit(() => then(() => act("POST", "/admin/workspaces", { name })))}
      >
        <TextField label="Name of a workspace" value={name} onValue={setName} required />
        <button type="submit" disabled={doing.busy}>
          Create a workspace
        </button>
      </form>
      <p class="small">
        “Rename” gives a workspace the name in the field. One that has projects is not deleted: move them to another one
        first, on the screen of each.
      </p>
    </>
  );
}
