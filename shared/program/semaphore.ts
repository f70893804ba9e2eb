/** A semaphore with a queue, the longest waiting first, and a limit of permits per owner. */

export interface Semaphore {
  /**
   * Resolves to the function that releases the permit; rejects when the signal comes first.
   * @param owner permits with the same owner number at most `perOwner`; the queue skips an owner that has them all
   * @param since when the caller began to wait, unix milliseconds; absent: now
   */
  take(signal: AbortSignal, owner?: string, since?: number): Promise<() => void>;
  readonly busy: number;
  readonly waiting: number;
}

interface Waiting {
  readonly owner: string | undefined;
  readonly since: number;
  readonly call: () => void;
}

/** @param perOwner most permits of one owner; absent: all of them */
export function createSemaphore(atOnce: number, perOwner = atOnce): Semaphore {
  const line: Waiting[] = [];
  const owned = new Map<string, number>();
  const state = { busy: 0 };

  const mayHave = (owner: string | undefined) => owner === undefined || (owned.get(owner) ?? 0) < perOwner;

  const count = (owner: string | undefined, by: 1 | -1) => {
    state.busy += by;
    if (owner === undefined) return;
    const now = (owned.get(owner) ?? 0) + by;
    if (now === 0) owned.delete(owner);
    else owned.set(owner, now);
  };

  const hand = (owner: string | undefined): (() => void) => {
    count(owner, 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      count(owner, -1);
      const place = line.findIndex((one) => mayHave(one.owner));
      if (place >= 0) line.splice(place, 1)[0]?.call();
    };
  };

  return {
    take(signal, owner, since = Date.now()) {
      signal.throwIfAborted();
      if (state.busy < atOnce && mayHave(owner)) return Promise.resolve(hand(owner));
      return new Promise((resolve, reject) => {
        const leave = () => {
          const place = line.indexOf(waiting);
          if (place >= 0) line.splice(place, 1);
          reject(signal.reason as Error);
        };
        const call = () => {
          signal.removeEventListener("abort", leave);
          resolve(hand(owner));
        };
        const waiting = { owner, since, call };
        signal.addEventListener("abort", leave, { once: true });
        const later = line.findIndex((one) => one.since > since);
        line.splice(later < 0 ? line.length : later, 0, waiting);
      });
    },
    get busy() {
      return state.busy;
    },
    get waiting() {
      return line.length;
    },
  };
}

/** Most permits of one owner: a quarter, at least one, stays for others where there is more than one permit. */
export function shareOf(atOnce: number): number {
  return Math.max(1, atOnce - Math.ceil(atOnce / 4));
}
