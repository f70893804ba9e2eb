/** The terminal of a sandbox. Its code comes when the tab is opened first. */

import { useEffect, useRef, useState } from "preact/hooks";
import { loadPart } from "../parts/load-part.ts";
import { Failure } from "../parts/parts.tsx";
import { ClipboardQuestion } from "./shell/clipboard-question.tsx";
import type { TabProps } from "./tab.ts";
import type { Shell } from "./xterm.ts";

export function TerminalTab({ sandbox, again }: TabProps) {
  const place = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const [state, setState] = useState("loading …");
  const [error, setError] = useState<unknown>(undefined);
  const [wanted, setWanted] = useState<string | undefined>(undefined);
  const refused = useRef(false);
  useEffect(() => {
    const left = { is: false, shell: undefined as Shell | undefined };
    loadPart(() => import("./xterm.ts"))
      .then(({ openShell }) => {
        if (left.is || place.current === null) return;
        left.shell = openShell(sandbox.sandboxID, place.current, {
          state: setState,
          leave: () => leave.current?.focus(),
          ended: again,
          // The text that a person reads stays until they have answered.
          wants: (text) => refused.current || setWanted((before) => before ?? text),
        });
      })
      .catch((failed: unknown) => {
        setError(failed);
        setState("");
      });
    return () => {
      left.is = true;
      left.shell?.close();
    };
  }, [sandbox.sandboxID, again]);
  return (
    <>
      <div class="bar">
        <p class="small" role="status">
          {state}
        </p>
        <button
          ref={leave}
          type="button"
          class="quiet"
          onClick={() => place.current?.querySelector("textarea")?.focus()}
        >
          Into the terminal (Ctrl+Shift+. leaves it)
        </button>
      </div>
      <Failure of={error} />
      {wanted !== undefined && (
        <ClipboardQuestion
          text={wanted}
          copied={(outcome) => {
            setWanted(undefined);
            setState(outcome);
          }}
          refuse={() => {
            refused.current = true;
            setWanted(undefined);
          }}
        />
      )}
      <div class="shell" ref={place} />
    </>
  );
}
