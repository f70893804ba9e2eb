/** The credentials that a program shows now. A renewal takes the place of the former ones without a restart. No I/O. */

import type { Credentials } from "./credentials.ts";

export interface LiveCredentials {
  /** The ones to show on the next connection; those that are open keep theirs. */
  readonly current: Credentials;
  replace(next: Credentials): void;
  /** Calls the listener after each renewal, until the returned function is called. */
  onReplaced(listener: (next: Credentials) => void): () => void;
}

export function liveCredentials(first: Credentials): LiveCredentials {
  let current = first;
  const listeners = new Set<(next: Credentials) => void>();
  return {
    get current() {
      return current;
    },
    replace(next) {
      current = next;
      for (const listener of listeners) listener(next);
    },
    onReplaced(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
