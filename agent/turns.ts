/** So many at a time, the others wait in line. */

export interface Turns {
  /** Resolves to the function that gives the turn back; rejects when the signal comes first. */
  take(signal: AbortSignal): Promise<() => void>;
  readonly busy: number;
  readonly waiting: number;
}

export function createTurns(atOnce: number): Turns {
  const line: (() => void)[] = [];
  const state = { busy: 0 };

  const hand = (): (() => void) => {
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const next = line.shift();
      if (next === undefined) state.busy--;
      else next();
    };
  };

  return {
    take(signal) {
      signal.throwIfAborted();
      if (state.busy < atOnce) {
        state.busy++;
        return Promise.resolve(hand());
      }
      return new Promise((resolve, reject) => {
        const leave = () => {
          const place = line.indexOf(called);
          if (place >= 0) line.splice(place, 1);
          reject(signal.reason as Error);
        };
        const called = () => {
          signal.removeEventListener("abort", leave);
          resolve(hand());
        };
        signal.addEventListener("abort", leave, { once: true });
        line.push(called);
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
