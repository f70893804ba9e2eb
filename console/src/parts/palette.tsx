/** Ctrl K: every screen, object and act of the screen by a few letters, without the mouse. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLoaded } from "../base/loaded.ts";
import { logOut, operatorProject, projectId } from "../base/session.ts";
import { changeTheme } from "../base/theme.ts";
import { knownOf } from "../sandboxes/live.ts";
import { actsOnScreen } from "./acts-on-screen.ts";
import { isOfInputMethod } from "./keys.ts";
import { loadObjects } from "./objects.ts";
import { mayLeave } from "./unsaved.ts";

/** As the platform makes them. */
const SANDBOX_ID = /^i[0-9a-z]{19}$/;

interface Entry {
  readonly name: string;
  readonly run: () => void;
}

interface Named {
  readonly path: string;
  readonly name: string;
}

export function Palette(props: {
  readonly places: readonly Named[];
  /** What the screens are for, in words of people who do not know the screens' names. */
  readonly ways: readonly Named[];
  readonly go: (path: string) => void;
  readonly close: () => void;
}) {
  const { places, ways, go, close } = props;
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  // The dialog opens before the browser reads the next key, so the field gets what a person types at once after Ctrl K.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  // As they were when it opened.
  const [acts] = useState(() => actsOnScreen(document.getElementById("main")));
  const objects = useLoaded(loadObjects, [projectId.value]).value ?? [];
  const entries: readonly Entry[] = [
    ...places.map(({ path, name }) => ({ name, run: () => go(path) })),
    { name: "Change theme", run: changeTheme },
    { name: "Log out", run: () => void (mayLeave() && logOut()) },
    ...acts,
    ...ways.map(({ path, name }) => ({ name, run: () => go(path) })),
    ...[...knownOf(projectId.value).values()].map(({ sandboxID: id, alias, templateID }) => ({
      name: `Sandbox ${id} ${alias ?? templateID}`,
      run: () => go(`/sandboxes/${id}`),
    })),
    ...objects.map(({ name, path, project }) => ({
      name,
      run() {
        if (project !== undefined) operatorProject.value = project;
        go(path);
      },
    })),
  ];
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const listed = entries.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word))).slice(0, 12);
  // An id from a log is often that of a sandbox that has ended, which no list has.
  const found =
    listed.length === 0 && SANDBOX_ID.test(wanted)
      ? [{ name: `Sandbox ${wanted}, also one that has ended`, run: () => go(`/sandboxes/${wanted}`) }]
      : listed;
  const at = Math.min(chosen, Math.max(0, found.length - 1));
  const take = (entry: Entry | undefined) => {
    // What is behind the dialog can have the focus only when the dialog is closed.
    dialog.current?.close();
    close();
    entry?.run();
  };
  const onKey = (event: KeyboardEvent) => {
    if (isOfInputMethod(event)) return;
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
        aria-label="Find a screen, an object or an act"
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
            key={`${index} ${entry.name}`}
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
