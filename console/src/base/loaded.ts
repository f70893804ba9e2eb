/** What a screen shows: loaded when it opens, again when asked, and again and again where it changes by itself. */

import { useCallback, useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly again: () => void;
}

/** @param everyMs loads again so often while the page is visible; absent: only when asked */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  needs: readonly unknown[],
  everyMs?: number,
): Loaded<T> {
  const [state, setState] = useState<{ readonly value: T | undefined; readonly error: unknown }>({
    value: undefined,
    error: undefined,
  });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    const left = new AbortController();
    load(left.signal).then(
      (value) => left.signal.aborted || setState({ value, error: undefined }),
      (error: unknown) => left.signal.aborted || setState(({ value }) => ({ value, error })),
    );
    return () => left.abort();
  }, [...needs, round]);
  useEffect(() => {
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => document.hidden || again(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, again]);
  return { ...state, again };
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
