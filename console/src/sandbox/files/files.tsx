/** The sandbox's files: browse, upload, download, look at text and change it. Names and contents are shown as text only. */

import { useMemo, useState } from "preact/hooks";
import { bytes, time } from "../../base/format.ts";
import { useDoing, useLoaded } from "../../base/loaded.ts";
import { onSubmit, TextField } from "../../parts/field.tsx";
import { Danger, Empty, Failure, Table } from "../../parts/parts.tsx";
import { call, callAct, fileUrl, writeFile } from "../envd.ts";
import type { TabProps } from "../tab.ts";
import { Editor, type OpenFile, openFile } from "./editor.tsx";
import { type Entry, isDirectory, shownOf } from "./entries.ts";
import { MOST_TEXT_BYTES } from "./text.ts";
import { uploadAll } from "./upload.ts";

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
    setOpen(undefined);
    setPath(to);
    setTyped(to);
  };
  const then = (work: () => Promise<unknown>) =>
    doing.run(async () => {
      await work();
      loaded.again();
    });
  const look = (entry: Entry) =>
    doing.run(async () => {
      setOpen(undefined);
      setOpen(await openFile(id, entry.path));
    });
  const { shown: entries, left } = useMemo(() => shownOf(loaded.value?.entries ?? []), [loaded.value]);
  return (
    <>
      <form class="bar" onSubmit={onSubmit(() => go(typed))}>
        <TextField label="Directory" value={typed} onValue={setTyped} />
        <button type="submit">Go</button>
        <button type="button" disabled={path === "/"} onClick={() => go(path.replace(/\/[^/]*\/?$/, "") || "/")}>
          Up
        </button>
        <label class="field">
          <span>Upload</span>
          <input
            type="file"
            multiple
            disabled={doing.busy}
            onChange={({ currentTarget: input }) => {
              const files = [...(input.files ?? [])];
              then(async () => {
                input.value = "";
                await uploadAll({
                  files,
                  store: (file) => writeFile(id, inside(path, file.name), file),
                  tell: setSent,
                });
              });
            }}
          />
        </label>
      </form>
      <p class="small" role="status">
        {doing.error === undefined ? sent : ""}
      </p>
      <Failure of={loaded.error ?? doing.error} />
      {open !== undefined && (
        <Editor key={open.path} id={id} file={open} close={() => setOpen(undefined)} saved={loaded.again} />
      )}
      {loaded.value !== undefined && entries.length === 0 && <Empty title={`${path} is empty.`} />}
      {left > 0 && <p class="small">{left} more are not shown, because there are too many.</p>}
      {entries.length > 0 && (
        <Table
          label={`Files in ${path}`}
          items={entries}
          keyOf={(entry) => entry.path}
          columns={[
            {
              name: "Name",
              show: (entry) =>
                isDirectory(entry) ? (
                  <button type="button" class="link" onClick={() => go(entry.path)}>
                    {entry.name}/
                  </button>
                ) : (
                  entry.name
                ),
            },
            { name: "Size", show: (entry) => (isDirectory(entry) ? "–" : bytes(Number(entry.size ?? 0))) },
            { name: "Mode", show: ({ permissions }) => <code>{permissions}</code> },
            { name: "Owner", show: ({ owner }) => owner },
            { name: "Changed", show: ({ modifiedTime }) => time(modifiedTime) },
            {
              name: "Acts",
              show: (entry) => (
                <span class="acts">
                  {!isDirectory(entry) && (
                    <>
                      <button
                        type="button"
                        disabled={doing.busy || Number(entry.size ?? 0) > MOST_TEXT_BYTES}
                        aria-label={`Open ${entry.name}`}
                        onClick={() => look(entry)}
                      >
                        Open
                      </button>
                      <a
                        class="button"
                        href={fileUrl(id, entry.path)}
                        download={entry.name}
                        aria-label={`Download ${entry.name}`}
                      >
                        Download
                      </a>
                    </>
                  )}
                  <Danger
                    disabled={doing.busy}
                    label={`Delete ${entry.name}`}
                    onConfirm={() => then(() => callAct(id, "filesystem.Filesystem/Remove", { path: entry.path }))}
                  >
                    Delete
                  </Danger>
                </span>
              ),
            },
          ]}
        />
      )}
    </>
  );
}

function inside(directory: string, name: string): string {
  return `${directory.replace(/\/$/, "")}/${name}`;
}
