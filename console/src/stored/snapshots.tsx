/** Every snapshot of the project. */

import { pages } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { Empty, Failure, Screen } from "../parts/parts.tsx";
import type { Snapshot } from "../sandbox/snapshots/lineage.ts";
import { SnapshotTable } from "../sandbox/snapshots/snapshots.tsx";

export function SnapshotsScreen() {
  const loaded = useLoaded((signal) => pages<Snapshot>("/snapshots", signal), []);
  return (
    <Screen title="Snapshots">
      <Failure of={loaded.error} />
      {loaded.value?.length === 0 && (
        <Empty title="The project has no snapshot.">
          <p>A running sandbox has a tab “Snapshots” that takes one, with its memory; the sandbox goes on running.</p>
        </Empty>
      )}
      {loaded.value !== undefined && <SnapshotTable items={loaded.value} again={loaded.again} />}
    </Screen>
  );
}
