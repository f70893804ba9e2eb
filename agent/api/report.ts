/** Reports to the orchestrator what runs here and what room is left, regularly and after events; applies its answer. */

import type { ExitReport, Heartbeat, HeartbeatReply, nodeApi } from "../../shared/agent-api/routes.ts";
import type { Client } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { findingText } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import { reachFailure } from "../../shared/tls/failures.ts";
import type { SentReport } from "../lease/lease.ts";

const CALL_LIMIT_MS = 5_000;
/** Events within this time share one report, which comes after the first command of a sandbox that has just begun. */
const SOON_MS = 150;

export interface ReportDeps {
  readonly nodeId: string;
  readonly everyMs: number;
  readonly contact: Contact;
  readonly orchestratorUrl: string;
  readonly orchestrator: Pick<Client<typeof nodeApi>, "heartbeat" | "reportExits">;
  readonly describe: () => Omit<Heartbeat, "exits">;
  readonly exits: () => ExitReport[];
  /** The node does not serve the store that answers. */
  readonly refused: () => boolean;
  readonly acknowledge: (executionIds: readonly string[]) => void;
  /** False: the node does not serve the store that answers, which does not count as contact. */
  readonly apply: (reply: HeartbeatReply, sent: SentReport) => boolean;
  /** Milliseconds since the start of the kernel. */
  readonly sinceBoot: () => number;
  readonly now: () => number;
  readonly log: Log;
}

/** The agent's knowledge of its orchestrator. Only the report writes it. */
export interface Contact {
  /** Time of the last answer, or of the start, in unix milliseconds. */
  last: number;
  /** The same by the monotonic time of this process: a clock that is set makes no orchestrator silent. */
  at: number;
  reached: boolean;
  /** Why the orchestrator is not reached, in a sentence without a full stop. */
  problem: string | undefined;
  /** Which address of this node the orchestrator does not reach, and what to do. */
  unreached: string | undefined;
}

export function createContact(now: () => number): Contact {
  return { last: now(), at: performance.now(), reached: false, problem: undefined, unreached: undefined };
}

export interface Report {
  /** Sends the first report; before that, `soon` and `exited` do nothing. */
  start(): void;
  /** Sends the next report soon, because something has changed. */
  soon(): void;
  /** Call when a sandbox has ended without a request. */
  exited(): void;
  stop(): Promise<void>;
}

export function createReport(deps: ReportDeps): Report {
  const { nodeId, everyMs, contact, orchestrator, orchestratorUrl } = deps;
  const { describe, exits, acknowledge, apply, refused, now, log } = deps;
  let sending: Promise<void> | undefined;
  let waiting: NodeJS.Timeout | undefined;
  let beats: Loop | undefined;

  const noteUnreached = (findings: HeartbeatReply["unreached"]) => {
    const unreached = findings?.map(findingText).join(" | ");
    if (unreached !== undefined && unreached !== contact.unreached) log.warn({ nodeId }, unreached);
    if (unreached === undefined && contact.unreached !== undefined) {
      log.info({ nodeId }, "the orchestrator reaches this node");
    }
    contact.unreached = unreached;
  };

  const noteContact = () => Object.assign(contact, { last: now(), at: performance.now() });

  const beat = async (signal: AbortSignal) => {
    const at = deps.sinceBoot();
    const body = { ...describe(), exits: exits() };
    try {
      const reply = await orchestrator.heartbeat({ body }, { signal, timeoutMs: CALL_LIMIT_MS });
      if (!contact.reached) log.info("the orchestrator answers");
      contact.reached = true;
      contact.problem = undefined;
      noteUnreached(reply.unreached);
      if (!apply(reply, { at, executions: body.executions.map(({ executionId }) => executionId) })) return;
      noteContact();
      acknowledge(body.exits.map(({ executionId }) => executionId));
    } catch (error) {
      const problem = problemIn(error, orchestratorUrl);
      const level = contact.reached || problem !== contact.problem ? "warn" : "debug";
      log[level]({ err: error }, problem);
      contact.reached = false;
      contact.problem = problem;
    }
  };

  const send = async () => {
    try {
      // The exits wait for the store that knows their sandboxes.
      if (refused()) return;
      for (let pending = exits(); pending.length > 0; pending = exits()) {
        await orchestrator.reportExits({ params: { nodeId }, body: { exits: pending } }, { timeoutMs: CALL_LIMIT_MS });
        acknowledge(pending.map(({ executionId }) => executionId));
      }
    } catch (error) {
      // The exits are kept and go with the next heartbeat.
      log.debug({ err: error }, "could not report exits yet");
    } finally {
      sending = undefined;
    }
  };

  return {
    start() {
      noteContact();
      beats ??= loop({ name: "heartbeat", everyMs, log }, beat);
    },
    soon() {
      if (beats === undefined) return;
      waiting ??= setTimeout(() => {
        waiting = undefined;
        beats?.wake();
      }, SOON_MS).unref();
    },
    exited() {
      if (beats !== undefined) sending ??= send();
    },
    async stop() {
      clearTimeout(waiting);
      await beats?.stop();
      await sending;
    },
  };
}

function problemIn(error: unknown, orchestratorUrl: string): string {
  if (error instanceof AppError && error.code !== "node_unreachable") {
    return `the orchestrator takes no reports: ${error.message}`;
  }
  const why = reachFailure(error, orchestratorUrl);
  return `the orchestrator does not answer${why === undefined ? "" : `: ${why}`}`;
}
