/** A picture of the screen a second, where the live screen cannot be had: the page draws it and runs nothing of it. */

import { useEffect, useState } from "preact/hooks";
import { time } from "../../base/format.ts";
import { pause } from "../../base/stream.ts";
import { Empty, Failure } from "../../parts/parts.tsx";
import { NoScreen } from "./endings.ts";
import type { Size } from "./picture.ts";
import { takePicture } from "./run.ts";

const EVERY_MS = 1_000;

type Shown =
  | { readonly is: "loading" }
  | { readonly is: "none" }
  | { readonly is: "picture"; readonly url: string; readonly size: Size; readonly at: string };

interface PicturesProps {
  readonly id: string;
  /** There is no live screen. */
  readonly why: unknown;
  /** The live screen is wanted again. */
  readonly again: () => void;
  /** The sandbox has no screen at all. */
  readonly none: () => void;
}

export function Pictures({ id, why, again, none }: PicturesProps) {
  const { shown, error } = usePictures(id);
  useEffect(() => {
    if (shown.is === "none") none();
  }, [shown.is, none]);
  if (shown.is === "none")
    return (
      <Empty title="This sandbox has no screen.">
        <p>
          Sandboxes of the template <code>desktop</code>, and of templates that are made of it, have one.
        </p>
      </Empty>
    );
  return (
    <>
      <div class="bar">
        <p class="small">{whyPictures(why)} A picture a second stands for it.</p>
        <button type="button" class="quiet" onClick={again}>
          Try the live screen again
        </button>
      </div>
      <p class="small" role="status">
        {shown.is === "loading" ? "loading …" : `watching, ${shown.size.width} × ${shown.size.height}`}
        {shown.is === "picture" && error !== undefined && `: the picture is that of ${time(shown.at)}`}
      </p>
      <Failure of={error} />
      {shown.is === "picture" && <img class="screen-picture" src={shown.url} alt="The sandbox's screen" />}
    </>
  );
}

function whyPictures(why: unknown): string {
  if (why instanceof NoScreen) return "The live screen needs x11vnc and Python, which the sandbox does not have.";
  const text = why instanceof Error ? why.message : String(why);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** A picture a second while the page is visible. */
function usePictures(id: string): { readonly shown: Shown; readonly error: unknown } {
  const [shown, setShown] = useState<Shown>({ is: "loading" });
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    const left = new AbortController();
    setShown({ is: "loading" });
    setError(undefined);
    const round = async () => {
      try {
        const { bytes, size } = await takePicture(id, left.signal);
        if (left.signal.aborted) return false;
        const url = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
        setShown({ is: "picture", url, size, at: new Date().toISOString() });
        setError(undefined);
      } catch (failed) {
        if (left.signal.aborted) return false;
        if (failed instanceof NoScreen) {
          setShown({ is: "none" });
          return false;
        }
        // The last picture stays, with its time.
        setError(failed);
      }
      return true;
    };
    void (async () => {
      let goesOn = true;
      while (goesOn && !left.signal.aborted) {
        if (!document.hidden) goesOn = await round();
        await pause(EVERY_MS, left.signal);
      }
    })();
    return () => left.abort();
  }, [id]);
  const url = shown.is === "picture" ? shown.url : undefined;
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url]);
  return { shown, error };
}
