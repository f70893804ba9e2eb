/** What is in a directory, with the acts on each entry. Names are shown as text only. */

import { useMemo } from "preact/hooks";
import { bytes, time } from "../../base/format.ts";
import { Danger, Empty, Table } from "../../parts/parts.tsx";
import { type Entry, isDirectory, isOpened, shownOf } from "./entries.ts";

export function EntryTable(props: {
  /** Of the directory. */
  readonly path: string;
  readonly entries: readonly Entry[];
  readonly disabled: boolean;
  /** Shows a directory. */
  readonly go: (path: string) => void;
  /** Where a file is downloaded. */
  readonly urlOf: (path: string) => string;
  readonly remove: (entry: Entry) => void;
  /** Shows the text of a file, or a picture; absent: nothing can be shown here. */
  readonly open?: (entry: Entry) => void;
}) {
  const { path, entries: all, disabled, go, urlOf, remove, open } = props;
  const { shown, left } = useMemo(() => shownOf(all), [all]);
  if (shown.length === 0) return <Empty title={`${path} is empty.`} />;
  return (
    <>
      {left > 0 && <p class="small">{left} more are not shown, because there are too many.</p>}
      <Table
        label={`Files in ${path}`}
        items={shown}
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
                {!isDirectory(entry) && open !== undefined && (
                  <button
                    type="button"
                    disabled={disabled || !isOpened(entry)}
                    aria-label={`Open ${entry.name}`}
                    onClick={() => open(entry)}
                  >
                    Open
                  </button>
                )}
                {!isDirectory(entry) && (
                  <a
                    class="button"
                    href={urlOf(entry.path)}
                    download={entry.name}
                    aria-label={`Download ${entry.name}`}
                  >
                    Download
                  </a>
                )}
                <Danger disabled={disabled} label={`Delete ${entry.name}`} onConfirm={() => remove(entry)}>
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
