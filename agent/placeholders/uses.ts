/**
 * Counts uses of placeholders, by name and never by value, and reports them to the orchestrator in batches. A batch that
 * was not acknowledged is sent again with the same id, so that it counts once. Counts are in memory only: an agent that is
 * killed loses those of the last seconds.
 */

import { randomUUID } from "node:crypto";
import type { Static } from "typebox";
import type { valueApi } from "../../shared/agent-api/value-shapes.ts";
import type { Client } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { AskedValue } from "../egress/channel/messages.ts";

const EVERY_MS = 2_000;
const CALL_LIMIT_MS = 5_000;
/** Time for the last reports of an agent that stops. */
const LAST_LIMIT_MS = 2_000;
const MOST_IN_REPORT = 1_000;
/** Different uses that wait while the orchestrator does not answer; further ones are dropped and counted. */
const MOST_WAITING = 10_000;
/** Hosts by name, for one placeholder of an execution; uses at others, of a wildcard rule, are counted together. */
const MOST_HOSTS = 32;
const OTHER_HOSTS = "*";

type Report = Static<typeof valueApi.reportUses.body>;
type Use = Report["uses"][number];

export interface Uses {
  count(asked: AskedValue, times?: number): void;
  /** Reports at the next opportunity instead of in some seconds. */
  soon(): void;
  /** Sends the last report with all uses that no report had, and ends the reports. */
  stop(): Promise<void>;
}

interface UsesDeps {
  readonly orchestrator: Pick<Client<typeof valueApi>, "reportUses">;
  readonly everyMs?: number;
  readonly now: () => number;
  readonly log: Log;
}

export function createUses({ orchestrator, everyMs = EVERY_MS, now, log }: UsesDeps): Uses {
  /** Uses by host, for each placeholder of each execution. */
  const waiting = new Map<string, Map<string, Use>>();
  const state = { size: 0, dropped: 0, report: undefined as Report | undefined };

  const nextReport = (): Report | undefined => {
    const uses: Use[] = [];
    for (const [key, hosts] of waiting) {
      for (const [host, use] of hosts) {
        if (uses.length === MOST_IN_REPORT) return { reportId: randomUUID(), uses };
        uses.push(use);
        hosts.delete(host);
        state.size -= 1;
      }
      waiting.delete(key);
    }
    return uses.length === 0 ? undefined : { reportId: randomUUID(), uses };
  };

  const send = async (timeoutMs: number) => {
    if (state.dropped > 0) log.warn({ dropped: state.dropped }, "uses of placeholders were not counted: too many wait");
    state.dropped = 0;
    for (;;) {
      state.report ??= nextReport();
      if (state.report === undefined) return;
      try {
        await orchestrator.reportUses({ body: state.report }, { timeoutMs });
      } catch (error) {
        const { status, message } = AppError.from(error);
        if (status >= 500 || status === 408 || status === 429) {
          log.debug({ reason: message }, "could not report uses of placeholders yet");
          return;
        }
        log.error({ reason: message }, "the orchestrator refuses a report of uses of placeholders, dropping it");
      }
      state.report = undefined;
    }
  };

  const rounds = loop({ name: "uses of placeholders", everyMs, log }, () => send(CALL_LIMIT_MS));

  return {
    count({ executionId, placeholder, host }, times = 1) {
      const key = `${executionId} ${placeholder}`;
      const hosts = waiting.get(key) ?? new Map<string, Use>();
      const known = hosts.has(host) || hosts.size < MOST_HOSTS;
      const counted = known ? host : OTHER_HOSTS;
      const use = hosts.get(counted);
      if (use === undefined && state.size >= MOST_WAITING) {
        state.dropped += times;
        return;
      }
      if (use === undefined) state.size += 1;
      hosts.set(counted, {
        executionId,
        asks: placeholder,
        host: counted,
        count: (use?.count ?? 0) + times,
        lastAt: now(),
      });
      waiting.set(key, hosts);
    },
    soon: () => rounds.wake(),
    async stop() {
      await rounds.stop();
      await send(LAST_LIMIT_MS);
    },
  };
}
