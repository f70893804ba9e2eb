/** One run at a time, the others in the order in which they came. */

export class Queue {
  #last: Promise<unknown> = Promise.resolve();
  #length = 0;

  /** Runs that wait or are under way. */
  get length(): number {
    return this.#length;
  }

  /** Does the work when all earlier work is done, however that ended. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#length += 1;
    const turn = this.#last.then(work);
    this.#last = turn.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await turn;
    } finally {
      this.#length -= 1;
    }
  }
}
