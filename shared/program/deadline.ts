/** Waits for work no longer than a limit, and limits of time that end with their work. */

/**
 * Runs work with a signal that aborts after a time with a `TimeoutError`. Its timer is gone with the result: one of
 * `AbortSignal.timeout` would keep for all of its time what belongs to the request that set it.
 */
export async function within<T>(limitMs: number, work: (limit: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController();
  const late = () => limit.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  const timer = setTimeout(late, limitMs).unref();
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * As `work`, or as `late`, when the limit comes first; the work itself goes on. The timer and the listener are gone with the result.
 * @param limit milliseconds, or a signal, which may have aborted already
 * @param late gives the result in place of the work's, or throws
 */
export async function withDeadline<T, L>(work: Promise<T>, limit: number | AbortSignal, late: () => L): Promise<T | L> {
  let stop = () => undefined as void;
  const over = new Promise<void>((resolve) => {
    if (typeof limit === "number") {
      const timer = setTimeout(resolve, limit);
      stop = () => clearTimeout(timer);
      return;
    }
    const end = () => resolve();
    limit.addEventListener("abort", end, { once: true });
    stop = () => limit.removeEventListener("abort", end);
    if (limit.aborted) end();
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    stop();
  }
}

/** Resolves after a time, or when the signal aborts. The timer and the listener are gone with it. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}
