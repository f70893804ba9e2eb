/** Ctrl K: every screen, act and sandbox by a few letters, without the mouse. */

import { useEffect, useRef, useState } from "preact/hooks";
import { changeTheme } from "../base/theme.ts";
import { known } from "../sandboxes/live.ts";

interface Entry {
  readonly name: string;
  readonly run: () => void;
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
  useEffect(() => dialog.current?.showModal(), []);
  const entries: readonly Entry[] = [
    ...places.map(({ path, name }) => ({ name, run: () => go(path) })),
    { name: "Change theme", run: changeTheme },
    ...[...known.value.values()].map(({ sandboxID: id, alias, templateID }) => ({
      name: `Sandbox ${id} ${alias ?? templateID}`,
      run: () => go(`/sandboxes/${id}`),
    })),
  ];
  const wanted = text.toLowerCase();
  const found = entries.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, 12);
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
        aria-label="Find a screen, an act or a sandbox"
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
