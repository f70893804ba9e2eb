/** Volumes of the project: disks that outlive sandboxes. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { volumeApi } from "../../../shared/api/volumes/volumes.ts";
import { act, get, type Reply } from "../base/client.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";
import { Danger, Empty, Failure, Screen, Table } from "../parts/parts.tsx";
import { mounting } from "./dependents.ts";
import { DependsOn } from "./depends-on.tsx";

type Volumes = Reply<typeof volumeApi.listVolumes>;

export function VolumesScreen() {
  const [name, setName] = useState("");
  const [asked, ask] = useState<string | undefined>(undefined);
  const doing = useDoing();
  const loaded = useLoaded((signal) => get<Volumes>("/volumes", {}, signal), []);
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      setName("");
      loaded.again();
    });
  return (
    <Screen title="Volumes">
      <form class="bar" onSubmit={onSubmit(() => then(() => act("POST", "/volumes", { name })))}>
        <TextField label="Name" value={name} onValue={setName} required />
        <button type="submit" disabled={doing.busy || !may("sandboxes")}>
          Create a volume
        </button>
      </form>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value?.length === 0 && (
        <Empty title="The project has no volume.">
          <p>A sandbox mounts volumes when it is created; what is written there stays when the sandbox ends.</p>
        </Empty>
      )}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Volumes"
          items={loaded.value}
          keyOf={({ volumeID }) => volumeID}
          columns={[
            { name: "Name", show: ({ volumeID, name: shown }) => <Link href={`/volumes/${volumeID}`}>{shown}</Link> },
            { name: "Id", show: ({ volumeID }) => <code>{volumeID}</code> },
            {
              name: "Acts",
              show: (volume) => (
                <Danger
                  disabled={doing.busy || !may("admin")}
                  label={`Delete ${volume.name}`}
                  onAsk={() => ask(volume.name)}
                  onConfirm={() => then(() => act("DELETE", `/volumes/${volume.volumeID}`))}
                >
                  Delete
                </Danger>
              ),
            },
          ]}
        />
      )}
      {asked !== undefined && loaded.value?.some((volume) => volume.name === asked) === true && (
        <DependsOn key={asked} name={asked} load={(signal) => mounting(asked, signal)}>
          A volume that a sandbox or a snapshot mounts is not deleted: end the sandboxes first. With the volume go its
          files.
        </DependsOn>
      )}
    </Screen>
  );
}
