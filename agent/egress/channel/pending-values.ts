/**
 * Requests values for placeholders from the agent at the moment of use. A value is kept for as long as the agent allows, a
 * second at most, because a message to the agent and back for each request costs more than all else about it. Uses of kept
 * values are counted and reported.
 */

import type { AskedValue, FromEgress, PlaceholderAnswer, Resolved } from "./messages.ts";

const LIMIT_MS = 10_000;
const MOST_KEPT_MS = 1_000;
/** Time in which uses are counted together. */
const REPORT_MS = 1_000;
const MOST_IN_REPORT = 1_000;

interface Waiting {
  readonly asked: AskedValue;
  /** The execution's policy has changed, or it has ended: the value is for the request that waits, and not kept. */
  outdated: boolean;
  settle(answer: PlaceholderAnswer): void;
}

interface Kept {
  readonly answer: PlaceholderAnswer;
  readonly timer: NodeJS.Timeout;
}

export interface PendingValuesOptions {
  readonly limitMs?: number;
}

export function pendingValues(send: (message: FromEgress) => void, { limitMs = LIMIT_MS }: PendingValuesOptions = {}) {
  const waiting = new Map<number, Waiting>();
  /** By execution and placeholder. */
  const kept = new Map<string, Map<string, Kept>>();
  const used = new Map<string, AskedValue & { count: number }>();
  let reporting: NodeJS.Timeout | undefined;
  let last = 0;

  const report = () => {
    clearTimeout(reporting);
    reporting = undefined;
    if (used.size === 0) return;
    const uses = [...used.values()];
    used.clear();
    send({ is: "used", uses });
  };

  const count = ({ executionId, placeholder, host }: AskedValue) => {
    const key = `${executionId} ${host} ${placeholder}`;
    const before = used.get(key)?.count ?? 0;
    used.set(key, { executionId, placeholder, host, count: before + 1 });
    if (used.size >= MOST_IN_REPORT) report();
    else reporting ??= setTimeout(report, REPORT_MS).unref();
  };

  const keep = ({ executionId, placeholder }: AskedValue, answer: PlaceholderAnswer, keepMs: number) => {
    const ofExecution = kept.get(executionId) ?? new Map<string, Kept>();
    kept.set(executionId, ofExecution);
    clearTimeout(ofExecution.get(placeholder)?.timer);
    const timer = setTimeout(
      () => {
        ofExecution.delete(placeholder);
        if (ofExecution.size === 0 && kept.get(executionId) === ofExecution) kept.delete(executionId);
      },
      Math.min(keepMs, MOST_KEPT_MS),
    ).unref();
    ofExecution.set(placeholder, { answer, timer });
  };

  return {
    /** Without an answer in time there is no value. */
    ask(asked: AskedValue): Promise<PlaceholderAnswer> {
      const known = kept.get(asked.executionId)?.get(asked.placeholder);
      if (known !== undefined) {
        count(asked);
        return Promise.resolve(known.answer);
      }
      last += 1;
      const id = last;
      return new Promise((resolve) => {
        const settle = (answer: PlaceholderAnswer) => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(answer);
        };
        const timer = setTimeout(() => settle({ problem: "its value did not come in time" }), limitMs);
        waiting.set(id, { asked, outdated: false, settle });
        send({ is: "resolve", id, ...asked });
      });
    },
    came({ id, answer, keepMs }: Resolved) {
      const one = waiting.get(id);
      if (one === undefined) return;
      if (keepMs > 0 && !one.outdated && "value" in answer) keep(one.asked, answer, keepMs);
      one.settle(answer);
    },
    /** Called when the execution's policy changes, and when it ends or is paused. */
    drop(executionId: string) {
      for (const { timer } of kept.get(executionId)?.values() ?? []) clearTimeout(timer);
      kept.delete(executionId);
      for (const one of waiting.values()) if (one.asked.executionId === executionId) one.outdated = true;
    },
    /** Reports the uses that are counted. */
    report,
  };
}
