/** Ctrl K: every screen and object by a few letters, without the mouse. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Template } from "../../../shared/api/templates.ts";
import type { volumeApi } from "../../../shared/api/volumes/volumes.ts";
import { get, pages, type Reply } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { projectId } from "../base/session.ts";
import { changeTheme } from "../base/theme.ts";
import type { Snapshot } from "../sandbox/snapshots/lineage.ts";
import { knownOf } from "../sandboxes/live.ts";

/** As the platform makes them. */
const SANDBOX_ID = /^i[0-9a-z]{19}$/;

interface Entry {
  readonly name: string;
  readonly run: () => void;
}

interface Stored {
  readonly name: string;
  readonly path: string;
}

/** What the project has beside sandboxes. A list that cannot be read leaves the others to be found. */
async function loadObjects(signal: AbortSignal): Promise<readonly Stored[]> {
  if (projectId.value === undefined) return [];
  const lists = await Promise.allSettled([
    pages<Template>("/v2/templates", signal).then((all) =>
      all.map(({ templateID, names: [name] }) => ({
        name: `Template ${name ?? templateID}`,
        path: `/templates/${templateID}`,
      })),
    ),
    pages<Snapshot>("/snapshots", signal).then((all) =>
      all.map(({ snapshotID, sourceSandboxID: of }) => ({
        name: `Snapshot ${snapshotID}`,
        path: of === undefined ? "/snapshots" : `/sandboxes/${of}/snapshots`,
      })),
    ),
    get<Reply<typeof volumeApi.listVolumes>>("/volumes", {}, signal).then((all) =>
      all.map(({ name, volumeID }) => ({ name: `Volume ${name}`, path: `/volumes/${volumeID}` })),
    ),
  ]);
  return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
}

export function Palette(props: {
  readonly places: readonly { readonly path: string; readonly name: string }[];
  readonly go: (path: string) => void;
  readonly close: () => void;
}) {
  const { places, go, close } = props;
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  // The dialog opens before the browser reads the next key, so the field gets what a person types at once after Ctrl K.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const objects = useLoaded(loadObjects, [projectId.value]).value ?? [];
  const entries: readonly Entry[] = [
    ...places.map(({ path, name }) => ({ name, run: () => go(path) })),
    { name: "Change theme", run: changeTheme },
    ...[...knownOf(projectId.value).values()].map(({ sandboxID: id, alias, templateID }) => ({
      name: `Sandbox ${id} ${alias ?? templateID}`,
      run: () => go(`/sandboxes/${id}`),
    })),
    ...objects.map(({ name, path }) => ({ name, run: () => go(path) })),
  ];
  const wanted = text.trim().toLowerCase();
  const listed = entries.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, 12);
  // An id from a log is often that of a sandbox that has ended, which no list has.
  const found =
    listed.length === 0 && SANDBOX_ID.test(wanted)
      ? [{ name: `Sandbox ${wanted}, also one that has ended`, run: () => go(`/sandboxes/${wanted}`) }]
      : listed;
  const at = Math.min(chosen, Math.max(0, found.length - 1));
  const take = (entry: Entry | undefined) => {
    close();
    entry?.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setChosen((at + step + found.length) % Math.max(1, found.length));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      take(found[at]);
    }
  };
  return (
    <dialog ref={dialog} aria-label="Find or do" class="palette" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Find a screen or an object"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found.length === 0 ? undefined : `found-${at}`}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <div id="found" role="listbox" aria-label="Found">
        {found.map((entry, index) => (
          <div
            key={entry.name}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            onClick={() => take(entry)}
          >
            {entry.name}
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="small">Nothing is called that.</p>}
    </dialog>
  );
}
