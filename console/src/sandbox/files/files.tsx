/** The sandbox's files: browse, upload, download, look at text and change it, look at pictures. Names are shown as text only. */

import { useState } from "preact/hooks";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { FilesField, onSubmit, TextField } from "../../parts/field.tsx";
import { Failure } from "../../parts/parts.tsx";
import { mayLeave } from "../../parts/unsaved.ts";
import { call, callAct, fileUrl, writeFile } from "../envd.ts";
import type { TabProps } from "../tab.ts";
import { Editor, type OpenFile, openFile } from "./editor.tsx";
import { type Entry, inside, parentOf } from "./entries.ts";
import { EntryTable } from "./entry-table.tsx";
import { uploadAll } from "./upload.ts";

/** The same in every drawing, so that a table of nothing is not made again. */
const NONE: readonly Entry[] = [];

export function FilesTab({ sandbox: { sandboxID: id } }: TabProps) {
  const [path, setPath] = useState("/home/user");
  const [typed, setTyped] = useState(path);
  const [open, setOpen] = useState<OpenFile | undefined>(undefined);
  const [sent, setSent] = useState("");
  const doing = useDoing();
  const loaded = useLoaded(
    (signal) =>
      call<{ readonly entries?: readonly Entry[] }>(id, "filesystem.Filesystem/ListDir", { path, depth: 1 }, signal),
    [id, path],
  );
  const go = (to: string) => {
    if (!mayLeave()) return;
    setOpen(undefined);
    setPath(to);
    setTyped(to);
  };
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      loaded.again();
    });
  const look = (entry: Entry) => {
    if (!mayLeave()) return;
    doing.run(async () => {
      setOpen(undefined);
      setOpen(await openFile(id, entry.path));
    });
  };
  return (
    <>
      <form class="bar" onSubmit={onSubmit(() => go(typed))}>
        <TextField label="Directory" value={typed} onValue={setTyped} />
        <button type="submit">Go</button>
        <button type="button" disabled={path === "/"} onClick={() => go(parentOf(path))}>
          Up
        </button>
        <FilesField
          label="Upload"
          disabled={doing.busy}
          onFiles={(files) =>
            then(() =>
              uploadAll({ files, store: (file) => writeFile(id, inside(path, file.name), file), tell: setSent }),
            )
          }
        />
      </form>
      <p class="small" role="status">
        {doing.error === undefined ? sent : ""}
      </p>
      <Failure of={loaded.error ?? doing.error} />
      {open !== undefined && (
        <Editor key={open.path} id={id} file={open} close={() => setOpen(undefined)} saved={loaded.again} />
      )}
      {loaded.value !== undefined && (
        <EntryTable
          path={path}
          entries={loaded.value.entries ?? NONE}
          disabled={doing.busy}
          go={go}
          urlOf={(file) => fileUrl(id, file)}
          remove={(entry) => then(() => callAct(id, "filesystem.Filesystem/Remove", { path: entry.path }))}
          open={look}
        />
      )}
    </>
  );
}
