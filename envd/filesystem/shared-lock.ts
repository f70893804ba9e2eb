/** Many at once or one alone: watches are armed side by side, but never while some are being taken away. */

export class SharedLock {
  readonly #sharing = new Set<Promise<unknown>>();
  #alone: Promise<unknown> | undefined;

  /** Runs beside others that share, after those that want to be alone. */
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

  /** Runs when everybody before has finished, and before anybody after starts. */
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
