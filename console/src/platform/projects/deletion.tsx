/** How far the deletion of a project is. Its record outlives the project. */

import { useState } from "preact/hooks";
import type { Deletion } from "../../../../shared/api/projects/projects.ts";
import { get } from "../../base/client.ts";
import { Failed } from "../../base/failed.ts";
import { time } from "../../base/format.ts";
import { useLoaded } from "../../base/loaded.ts";
import { Failure, State, Table } from "../../parts/parts.tsx";

const EVERY_MS = 2_000;

export function DeletionOfProject({ path }: { readonly path: string }) {
  const [isOver, setOver] = useState(false);
  const loaded = useLoaded(
    async (signal) => {
      try {
        const read = await get<Deletion>(`${path}/deletion`, {}, signal);
        setOver(read.status === "deleted");
        return read;
      } catch (error) {
        // There never was such a project.
        if (error instanceof Failed && error.status === 404) setOver(true);
        throw error;
      }
    },
    [path],
    isOver ? "when asked" : EVERY_MS,
  );
  const deletion = loaded.value;
  const left = Object.entries(deletion?.remaining ?? {}).filter(([, count]) => count > 0);
  return (
    <section aria-label="Deletion of the project">
      <Failure of={loaded.error} />
      {deletion !== undefined && (
        <p role="status">
          ‘{deletion.name}’: <State of={deletion.status} />, begun {time(deletion.startedAt)}
          {deletion.finishedAt !== null && `, ended ${time(deletion.finishedAt)}`}. Its keys work no more.
        </p>
      )}
      {left.length > 0 && (
        <Table
          label="What is left of the project"
          items={left}
          keyOf={([kind]) => kind}
          columns={[
            { name: "Left", show: ([kind]) => kind },
            { name: "How many", show: ([, count]) => count },
          ]}
        />
      )}
    </section>
  );
}
