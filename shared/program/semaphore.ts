/**
 * A semaphore whose owners take turns: a permit that is released goes to the owner that has waited longest since its last one, and
 * of that owner's callers to the one that began to wait first. It has a limit of permits per owner.
 */

export interface Semaphore {
  /**
   * Resolves to the function that releases the permit; rejects when the signal comes first.
   * @param owner permits with the same owner number at most `perOwner`; the queue skips an owner that has them all. Callers
   * without an owner share one turn, and have no limit of their own
   * @param since when the caller began to wait, unix milliseconds; absent: now
   */
  take(signal: AbortSignal, owner?: string, since?: number): Promise<() => void>;
  readonly busy: number;
  readonly waiting: number;
  /** Whether this owner would get a permit at once. */
  isFree(owner: string | undefined): boolean;
  /** Callers of this owner that wait. */
  waitingOf(owner: string | undefined): number;
}

interface Waiting {
  readonly since: number;
  readonly call: () => void;
}

/** The callers of one owner, the longest waiting first. */
interface Line {
  readonly owner: string | undefined;
  /** When the owner got its last permit, or began to wait. */
  rank: number;
  readonly callers: Waiting[];
}

/** @param perOwner most permits of one owner; absent: all of them */
export function createSemaphore(atOnce: number, perOwner = atOnce): Semaphore {
  /** Owners that wait, in the order of their turns. */
  const ring: Line[] = [];
  const owned = new Map<string, number>();
  const state = { busy: 0, waiting: 0 };

  const mayHave = (owner: string | undefined) => owner === undefined || (owned.get(owner) ?? 0) < perOwner;
  const isFree = (owner: string | undefined) => state.busy < atOnce && mayHave(owner);
  const lineOf = (owner: string | undefined) => ring.find((line) => line.owner === owner);

  const count = (owner: string | undefined, by: 1 | -1) => {
    state.busy += by;
    if (owner === undefined) return;
    const now = (owned.get(owner) ?? 0) + by;
    if (now === 0) owned.delete(owner);
    else owned.set(owner, now);
  };

  const join = (owner: string | undefined, caller: Waiting) => {
    state.waiting++;
    const line = lineOf(owner);
    if (line === undefined) insert(ring, { owner, rank: caller.since, callers: [caller] }, ({ rank }) => rank);
    else insert(line.callers, caller, ({ since }) => since);
  };

  const leave = (owner: string | undefined, caller: Waiting) => {
    const line = lineOf(owner);
    const place = line?.callers.indexOf(caller) ?? -1;
    if (line === undefined || place < 0) return;
    state.waiting--;
    line.callers.splice(place, 1);
    if (line.callers.length === 0) ring.splice(ring.indexOf(line), 1);
  };

  const serve = () => {
    const place = ring.findIndex(({ owner }) => mayHave(owner));
    const [line] = place < 0 ? [] : ring.splice(place, 1);
    const caller = line?.callers.shift();
    if (line === undefined || caller === undefined) return;
    state.waiting--;
    // Behind all others, also when the clock has gone backwards.
    line.rank = Math.max(Date.now(), ring.at(-1)?.rank ?? 0);
    if (line.callers.length > 0) ring.push(line);
    caller.call();
  };

  const hand = (owner: string | undefined): (() => void) => {
    count(owner, 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      count(owner, -1);
      serve();
    };
  };

  return {
    take(signal, owner, since = Date.now()) {
      signal.throwIfAborted();
      if (isFree(owner)) return Promise.resolve(hand(owner));
      return new Promise((resolve, reject) => {
        const abort = () => {
          leave(owner, caller);
          reject(signal.reason as Error);
        };
        const call = () => {
          signal.removeEventListener("abort", abort);
          resolve(hand(owner));
        };
        const caller = { since, call };
        signal.addEventListener("abort", abort, { once: true });
        join(owner, caller);
      });
    },
    get busy() {
      return state.busy;
    },
    get waiting() {
      return state.waiting;
    },
    isFree,
    waitingOf: (owner) => lineOf(owner)?.callers.length ?? 0,
  };
}

/** Behind all that have the same key or a smaller one. */
function insert<T>(sorted: T[], one: T, key: (of: T) => number): void {
  const place = sorted.findIndex((other) => key(other) > key(one));
  sorted.splice(place < 0 ? sorted.length : place, 0, one);
}

/** Most permits of one owner: a quarter, at least one, stays for others where there is more than one permit. */
export function shareOf(atOnce: number): number {
  return Math.max(1, atOnce - Math.ceil(atOnce / 4));
}
