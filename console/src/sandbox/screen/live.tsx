/** The live screen of a sandbox, and who steers it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { keepLive } from "./keep-live.ts";
import { showScreen } from "./no-vnc.ts";

interface LiveProps {
  readonly id: string;
  /** It is given up, for this reason. */
  readonly instead: (why: unknown) => void;
  /** The sandbox has ended. */
  readonly ended: () => void;
}

export function LiveScreen({ id, instead, ended }: LiveProps) {
  const place = useRef<HTMLDivElement>(null);
  const changes = useRef<HTMLButtonElement>(null);
  /** Somebody has pressed the button: only then the keyboard goes to the screen by itself. */
  const isPressed = useRef(false);
  const [takesOver, setTakesOver] = useState(false);
  const [state, setState] = useState("loading …");
  useEffect(() => {
    const left = new AbortController();
    const telling = { state: setState, instead, ended };
    const show = async (signal: AbortSignal) => {
      if (place.current === null) return;
      setState("connecting …");
      const size = (width: number, height: number) => {
        isPressed.current = false;
        setState(`${takesOver ? "taken over" : "watching"}, ${width} × ${height}`);
      };
      const leave = () => changes.current?.focus();
      await showScreen(id, place.current, { takesOver, focuses: isPressed.current, left: signal, size, leave });
    };
    keepLive(id, show, telling, left.signal).catch(instead);
    return () => left.abort();
  }, [id, takesOver, instead, ended]);
  const change = () => {
    isPressed.current = !takesOver;
    setTakesOver(!takesOver);
  };
  return (
    <>
      <div class="bar">
        <button ref={changes} type="button" onClick={change}>
          {takesOver ? "Watch only" : "Take over"}
        </button>
        {takesOver && (
          <button type="button" class="quiet" onClick={() => place.current?.querySelector("canvas")?.focus()}>
            Into the screen (Ctrl+Shift+. leaves it)
          </button>
        )}
        <p class="small" role="status">
          {state}
        </p>
      </div>
      <div class="screen-live" ref={place} />
    </>
  );
}
