/** Reports to the orchestrator what runs here and what room is left, regularly and after events; applies its answer. */

import type { ExitReport, Heartbeat, HeartbeatReply, nodeApi } from "../../shared/agent-api/routes.ts";
import type { Client } from "../../shared/http/contract.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";

const CALL_LIMIT_MS = 5_000;
/** Events within this time share one report, which comes after the first command of a sandbox that has just begun. */
const SOON_MS = 150;

export interface ReportDeps {
  readonly orchestrator: Pick<Client<typeof nodeApi>, "heartbeat" | "reportExits">;
  readonly nodeId: string;
  readonly everyMs: number;
  readonly describe: () => Omit<Heartbeat, "exits">;
  readonly exits: () => ExitReport[];
  readonly acknowledge: (executionIds: readonly string[]) => void;
  readonly apply: (reply: HeartbeatReply) => void;
  readonly now: () => number;
  readonly log: Log;
}

export interface Report {
  /** Sends the next report soon, because something has changed. */
  soon(): void;
  /** A sandbox ended by itself. */
  exited(): void;
  /** Time of the last answer, or of the start, in unix milliseconds. */
  readonly lastContact: number;
  readonly reached: boolean;
  stop(): Promise<void>;
}

export function startReport(deps: ReportDeps): Report {
  const { orchestrator, nodeId, everyMs, describe, exits, acknowledge, apply, now, log } = deps;
  const state = { lastContact: now(), reached: false, sending: undefined as Promise<void> | undefined };
  let waiting: NodeJS.Timeout | undefined;

  const beat = loop({ name: "heartbeat", everyMs, log }, async (signal) => {
    const body = { ...describe(), exits: exits() };
    try {
      const reply = await orchestrator.heartbeat({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
      if (!state.reached) log.info("the orchestrator answers");
      Object.assign(state, { lastContact: now(), reached: true });
      acknowledge(body.exits.map(({ executionId }) => executionId));
      apply(reply);
    } catch (error) {
      if (state.reached) log.warn({ err: error }, "the orchestrator does not answer");
      else log.debug({ err: error }, "the orchestrator does not answer");
      state.reached = false;
    }
  });

  const send = async () => {
    try {
      for (let pending = exits(); pending.length > 0; pending = exits()) {
        await orchestrator.reportExits({ params: { nodeId }, body: { exits: pending } }, { timeoutMs: CALL_LIMIT_MS });
        acknowledge(pending.map(({ executionId }) => executionId));
      }
    } catch (error) {
      // The exits are kept and go with the next heartbeat.
      log.debug({ err: error }, "could not report exits yet");
    } finally {
      state.sending = undefined;
    }
  };

  return {
    soon() {
      waiting ??= setTimeout(() => {
        waiting = undefined;
        beat.wake();
      }, SOON_MS).unref();
    },
    exited() {
      state.sending ??= send();
    },
    get lastContact() {
      return state.lastContact;
    },
    get reached() {
      return state.reached;
    },
    async stop() {
      clearTimeout(waiting);
      await beat.stop();
      await state.sending;
    },
  };
}
