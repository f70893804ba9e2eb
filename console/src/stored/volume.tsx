/** What is in a volume: browse, upload, download, make directories, delete. */

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { volumeApi } from "../../../shared/api/volumes/volumes.ts";
import { get, type Reply } from "../base/client.ts";
import { useDoing, useLoaded } from "../base/loaded.ts";
import { may } from "../base/session.ts";
import { FilesField, onSubmit, TextField } from "../parts/field.tsx";
import { Empty, Failure, Screen } from "../parts/parts.tsx";
import { inside, parentOf } from "../sandbox/files/entries.ts";
import { EntryTable } from "../sandbox/files/entry-table.tsx";
import { uploadAll } from "../sandbox/files/upload.ts";
import {
  downloadUrl,
  listDirectory,
  makeVolumeDirectory,
  removeFromVolume,
  writeVolumeFile,
} from "./volume-content.ts";

type Volume = Reply<typeof volumeApi.listVolumes>[number];

export function VolumeScreen({ id }: { readonly id: string }) {
  const volumes = useLoaded((signal) => get<Volume[]>("/volumes", {}, signal), []);
  const name = volumes.value?.find(({ volumeID }) => volumeID === id)?.name ?? id;
  return (
    <Screen title={`Volume ${name}`} acts={<Link href="/volumes">All volumes</Link>}>
      <Failure of={volumes.error} />
      {may("sandboxes") ? (
        <Content id={id} />
      ) : (
        <Empty title="This key may only read. What is in volumes needs the scope ‘sandboxes’." />
      )}
    </Screen>
  );
}

function Content({ id }: { readonly id: string }) {
  const [path, setPath] = useState("/");
  const [name, setName] = useState("");
  const [sent, setSent] = useState("");
  const doing = useDoing();
  const loaded = useLoaded((signal) => listDirectory(id, path, signal), [id, path]);
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      loaded.again();
    });
  const make = () =>
    then(async () => {
      await makeVolumeDirectory(id, inside(path, name));
      setName("");
    });
  const upload = (files: readonly File[]) =>
    then(() =>
      uploadAll({ files, store: (file) => writeVolumeFile(id, inside(path, file.name), file), tell: setSent }),
    );
  return (
    <>
      <form class="bar" onSubmit={onSubmit(make)}>
        <button type="button" disabled={path === "/"} onClick={() => setPath(parentOf(path))}>
          Up
        </button>
        <TextField label="New directory" value={name} onValue={setName} required />
        <button type="submit" disabled={doing.busy}>
          Make it
        </button>
        <FilesField label="Upload" disabled={doing.busy} onFiles={upload} />
      </form>
      <p class="small" role="status">
        {path} {doing.error === undefined ? sent : ""}
      </p>
      <Failure of={loaded.error ?? doing.error} />
      {loaded.value !== undefined && (
        <EntryTable
          path={path}
          entries={loaded.value}
          disabled={doing.busy}
          go={setPath}
          urlOf={(file) => downloadUrl(id, file)}
          remove={(entry) => then(() => removeFromVolume(id, entry.path))}
        />
      )}
    </>
  );
}
