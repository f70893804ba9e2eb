/** Waits for work no longer than a limit. The work itself goes on: what can be stopped has a signal of its own. */

/**
 * As `work`, or as `late`, when the limit comes first. The timer and the listener are gone with the result.
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
