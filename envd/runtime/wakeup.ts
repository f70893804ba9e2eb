/** Waits for an event of another part of the program: with a limit, and until the caller disconnects. */

export class Wakeup {
  #wake: (() => void) | undefined;

  /** Ends the wait, if there is one. */
  wake(): void {
    this.#wake?.();
  }

  /** Resolves at `wake`, after `limitMs`, or when the signal aborts; the caller looks which. One wait at a time. */
  wait(limitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, limitMs);
      this.#wake = done;
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}
