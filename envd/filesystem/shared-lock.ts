/** A shared and exclusive lock: watches are added in parallel, but never while some are being removed. */

export class SharedLock {
  readonly #sharing = new Set<Promise<unknown>>();
  #alone: Promise<unknown> | undefined;

  /** Runs in parallel with other shared work, after exclusive work that came before. */
  async share<T>(work: () => Promise<T>): Promise<T> {
    while (this.#alone !== undefined) await this.#alone;
    const running = work();
    const settled = running.catch(() => undefined);
    this.#sharing.add(settled);
    try {
      return await running;
    } finally {
      this.#sharing.delete(settled);
    }
  }

  /** Runs when all earlier work has finished, and before later work starts. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#alone;
    const running = (async () => {
      await before;
      await Promise.all(this.#sharing);
      return work();
    })();
    const settled = running.catch(() => undefined);
    this.#alone = settled;
    try {
      return await running;
    } finally {
      if (this.#alone === settled) this.#alone = undefined;
    }
  }
}
