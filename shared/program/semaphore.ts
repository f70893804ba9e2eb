/** So many at a time, the others wait in line; and of those that are the same owner's, fewer. */

export interface Turns {
  /**
   * Resolves to the function that gives the turn back; rejects when the signal comes first.
   * @param owner those with the same one have at most `perOwner` turns together, and are passed over in line meanwhile
   */
  take(signal: AbortSignal, owner?: string): Promise<() => void>;
  readonly busy: number;
  readonly waiting: number;
}

interface Waiting {
  readonly owner: string | undefined;
  readonly call: () => void;
}

/** @param perOwner turns of one owner at a time; without it as many as there are */
export function createTurns(atOnce: number, perOwner = atOnce): Turns {
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
    take(signal, owner) {
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
        const waiting = { owner, call };
        signal.addEventListener("abort", leave, { once: true });
        line.push(waiting);
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

/** How many of so many turns one owner may hold: a quarter, at least one, is left to others where there is more than one. */
export function shareOf(atOnce: number): number {
  return Math.max(1, atOnce - Math.ceil(atOnce / 4));
}
