/** Requests values for placeholders from the agent at the moment of use. */

import type { FromEgress, Resolved } from "../messages.ts";

const LIMIT_MS = 10_000;

export function pendingValues(send: (message: FromEgress) => void, limitMs = LIMIT_MS) {
  const waiting = new Map<number, (value: string | undefined) => void>();
  let last = 0;
  return {
    /** Undefined when there is none, or no answer in time: the request fails either way. */
    ask(executionId: string, placeholder: string): Promise<string | undefined> {
      last += 1;
      const id = last;
      return new Promise((resolve) => {
        const settle = (value: string | undefined) => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(value);
        };
        const timer = setTimeout(() => settle(undefined), limitMs);
        waiting.set(id, settle);
        send({ is: "resolve", id, executionId, placeholder });
      });
    },
    came({ id, value }: Resolved) {
      waiting.get(id)?.(value);
    },
  };
}
