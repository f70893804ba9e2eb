/** What a screen shows: loaded when it opens, again when asked, and again and again where it changes by itself. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isLost } from "./again.ts";
import { isDue } from "./due.ts";
import { Failed } from "./failed.ts";

/** So often what got no answer is asked for again. */
const LOST_MS = 3_000;

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly again: () => void;
}

/**
 * @param every loads again after so many milliseconds while the page is visible; absent: when asked, and while nothing answers;
 *   `when asked`: only then, because each answer costs the platform some seconds; `not now`: never, and what is under way is left
 *   without a word, because this page deletes what it asks for
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  needs: readonly unknown[],
  every?: number | "when asked" | "not now",
): Loaded<T> {
  const rests = every === "not now";
  const [state, setState] = useState<{ readonly value: T | undefined; readonly error: unknown }>({
    value: undefined,
    error: undefined,
  });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((count) => count + 1), []);
  const begunAt = useRef<number | undefined>(undefined);
  const underWay = useRef<AbortController | undefined>(undefined);
  // Effects run after the next picture, and an answer may come before it.
  useLayoutEffect(() => {
    if (rests) underWay.current?.abort();
  }, [rests]);
  useEffect(() => {
    if (rests) return undefined;
    const left = new AbortController();
    underWay.current = left;
    begunAt.current = performance.now();
    load(left.signal).then(
      (value) => {
        if (left.signal.aborted) return;
        begunAt.current = undefined;
        setState({ value, error: undefined });
      },
      (error: unknown) => {
        if (left.signal.aborted) return;
        begunAt.current = undefined;
        setState(({ value }) => ({ value, error }));
      },
    );
    return () => left.abort();
  }, [...needs, round, rests]);
  const lookMs = typeof every === "string" ? undefined : (every ?? (isUnanswered(state.error) ? LOST_MS : undefined));
  useEffect(() => {
    if (lookMs === undefined) return undefined;
    const look = () => {
      if (!document.hidden && isDue(begunAt.current, performance.now())) again();
    };
    const timer = setInterval(look, lookMs);
    return () => clearInterval(timer);
  }, [lookMs, again]);
  return { ...state, again };
}

/** A code is the platform's own answer, for example that a node does not answer: asked again at once, it would be the same. */
function isUnanswered(error: unknown): boolean {
  return isLost(error) && error instanceof Failed && error.code === undefined;
}

export interface Doing {
  readonly busy: boolean;
  readonly error: unknown;
  /** Runs one act at a time; its failure is shown until the next one. */
  readonly run: (work: () => Promise<void>) => void;
}

export function useDoing(): Doing {
  const [state, setState] = useState<{ readonly busy: boolean; readonly error: unknown }>({
    busy: false,
    error: undefined,
  });
  const run = useCallback((work: () => Promise<void>) => {
    setState({ busy: true, error: undefined });
    work().then(
      () => setState({ busy: false, error: undefined }),
      (error: unknown) => setState({ busy: false, error }),
    );
  }, []);
  return { ...state, run };
}
