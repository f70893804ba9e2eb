/** Announces ends that were set to expiry, so that code that sets one depends on nothing else of it. */

export interface Deadlines {
  /** An end was set: expiry runs a round at that time, also between two regular ones. */
  soon(endAt: number): void;
  /** Calls the listener when an end that was set has passed. */
  onPassed(listener: () => void): void;
}

export function createDeadlines(now: () => number): Deadlines {
  const listeners: (() => void)[] = [];
  return {
    soon(endAt) {
      if (endAt <= now()) for (const listener of listeners) listener();
    },
    onPassed: (listener) => void listeners.push(listener),
  };
}
