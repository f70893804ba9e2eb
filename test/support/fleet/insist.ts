/**
 * Requests of a client that does not give up: what an orchestrator left unanswered is asked again at the other one, until the
 * platform has done it.
 */

import { setTimeout as delay } from "node:timers/promises";
import { api, type Reply } from "../platform/platform.ts";
import type { Fleet } from "./fleet.ts";

export type Kind = "create" | "pause" | "resume" | "kill" | "fork" | "snapshot";

/** A request that changes something. */
export interface Work {
  readonly kind: Kind;
  /** The sandbox that it is about; none for a create. */
  readonly id: string;
}

export interface Insisted {
  /** What the first orchestrator answered; undefined when it was away, or died meanwhile. */
  readonly first: number | undefined;
  /** The answer by which it was done. */
  readonly last: Reply;
  /** Requests before that one that may have been done although nobody has heard so. */
  readonly unheard: number;
  readonly tookMs: number;
}

/** As long as sandboxes of tests live. */
const TIMEOUT_S = 3_600;
/** More than an orchestrator's lease, after which another one takes its work over, and a restore on a busy machine. */
const LIMIT_MS = 120_000;
const EVERY_MS = 500;

/** Asks one orchestrator once; undefined: no answer. */
export function ask(fleet: Fleet, orchestrator: number, work: Work): Promise<Reply | undefined> {
  const { method, path, body } = requestOf(work);
  return api(fleet.through(orchestrator), method, path, body === undefined ? {} : { body }).catch(() => undefined);
}

/**
 * Asks `orchestrator`, and where that has not done it the others and it in turn.
 * @param answer the first answer, where it was asked already
 */
export function insist(
  fleet: Fleet,
  work: Work,
  orchestrator: number,
  answer: Promise<Reply | undefined> = ask(fleet, orchestrator, work),
): Promise<Insisted> {
  const request: Insistence = {
    what: `the ${work.kind} of ${work.id}`,
    ask: (by) => ask(fleet, by, work),
    isDone: (said, { next }) => isDone(fleet, work, said, next),
  };
  return untilDone(request, orchestrator, answer);
}

/** What is asked, again and again. */
interface Insistence {
  readonly what: string;
  /** @param attempt from 0; undefined: no answer */
  readonly ask: (orchestrator: number, attempt: number) => Promise<Reply | undefined>;
  readonly isDone: (said: Reply, so: SoFar) => boolean | Promise<boolean>;
}

interface SoFar {
  /** Requests that may have been done although nobody has heard so. */
  readonly unheard: number;
  /** The orchestrator whose turn is next. */
  readonly next: number;
}

/** As `insist`, for any request. */
export async function untilDone(
  request: Insistence,
  orchestrator: number,
  answer: Promise<Reply | undefined> = request.ask(orchestrator, 0),
): Promise<Insisted> {
  const begun = Date.now();
  let said = await answer;
  let unheard = 0;
  const first = said?.status;
  for (let turn = 1; ; turn++) {
    if (said !== undefined && (await request.isDone(said, { unheard, next: orchestrator + turn }))) {
      return { first, last: said, unheard, tookMs: Date.now() - begun };
    }
    const heard = said === undefined ? "nothing" : `${said.status} ${said.text}`;
    if (Date.now() - begun > LIMIT_MS) {
      throw new Error(`${request.what} was not done within ${LIMIT_MS / 1000} s; last answer: ${heard}`);
    }
    if (said !== undefined && said.status >= 300 && !mayComeLater(said.status))
      throw new Error(`${request.what} was answered with ${heard}`);
    if (said === undefined || said.status >= 500) unheard++;
    await delay(turn === 1 ? 0 : EVERY_MS);
    said = await request.ask(orchestrator + turn, turn);
  }
}

interface Entry {
  readonly sandbox?: { readonly sandboxID?: string };
  readonly error?: { readonly code?: number };
}

/**
 * Ids of the sandboxes that a create or a fork has made. A fork says of each whether it was made: one whose node was away meanwhile
 * was not. Throws where one was refused.
 */
export function madeBy({ json, text }: Reply): readonly string[] {
  const entries = (Array.isArray(json) ? json : [{ sandbox: json }]) as readonly Entry[];
  return entries.flatMap(({ sandbox, error }) => {
    if (sandbox?.sandboxID !== undefined) return [sandbox.sandboxID];
    if (error?.code === undefined || error.code < 500) throw new Error(`a sandbox was not made: ${text}`);
    return [];
  });
}

/** What a GET of a sandbox says: its state, or "gone". Throws when the orchestrator does not say it. */
export async function stateOf(fleet: Fleet, orchestrator: number, id: string): Promise<string> {
  const reply = await api(fleet.through(orchestrator), "GET", `/sandboxes/${id}`);
  if (reply.status === 404) return "gone";
  if (reply.status !== 200) throw new Error(`GET of ${id} answered ${reply.status}: ${reply.text}`);
  return (reply.json as { state: string }).state;
}

async function isDone(fleet: Fleet, { kind, id }: Work, said: Reply, orchestrator: number): Promise<boolean> {
  const { status } = said;
  if (status < 300) return kind !== "fork" || madeBy(said).length > 0;
  if (kind === "kill") return status === 404;
  // The first request has done it, unheard.
  if (kind === "pause" && status === 409) {
    return (await stateOf(fleet, orchestrator, id).catch(() => "unknown")) === "paused";
  }
  return false;
}

/**
 * Busy, in transition, or something that it needs is away. A snapshot does not wait for another one of its sandbox: while the one that an
 * orchestrator died with is not given up, which takes its lease, each repetition is refused with 409, and the audit log has an entry of it.
 */
function mayComeLater(status: number): boolean {
  return status === 409 || status === 429 || status >= 500;
}

/** The route of each kind, as shared/openapi.json has it. */
export const ROUTES: Readonly<Record<Kind, string>> = {
  create: "POST /v2/sandboxes",
  pause: "POST /sandboxes/{sandboxID}/pause",
  resume: "POST /v2/sandboxes/{sandboxID}/connect",
  kill: "DELETE /sandboxes/{sandboxID}",
  fork: "POST /sandboxes/{sandboxID}/fork",
  snapshot: "POST /sandboxes/{sandboxID}/snapshots",
};

const BODIES: Readonly<Partial<Record<Kind, object>>> = {
  create: { templateID: "base", timeout: TIMEOUT_S },
  resume: { timeout: TIMEOUT_S },
  fork: { timeout: TIMEOUT_S, count: 2 },
};

function requestOf({ kind, id }: Work): { method: string; path: string; body: object | undefined } {
  const [method = "", path = ""] = ROUTES[kind].replace("{sandboxID}", id).split(" ");
  return { method, path, body: BODIES[kind] };
}
