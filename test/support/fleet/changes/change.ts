/** A request that changes something, with what it needs beforehand and what must be true afterwards. */

import type { ApiCall, Platform, Reply } from "../../platform/platform.ts";
import type { Ground } from "./ground.ts";

export interface Change {
  /** Method and path, as shared/openapi.json has them. */
  readonly route: string;
  /** Of two changes by one route. */
  readonly what?: string;
  /** Absent: the project of the fleet's tests. */
  readonly as?: "own project" | "operator";
  /** Makes what the request needs. */
  prepare(ground: Ground): Asked | Promise<Asked>;
}

export interface Asked {
  readonly path: string;
  readonly call?: ApiCall;
  /** Of a repetition, where it must differ from the first request. @param attempt from 1 */
  readonly repeated?: (attempt: number) => ApiCall;
  /**
   * Whether a refusal says that an earlier request, which nobody has heard an answer to, was done. Asked only when there was such
   * a request.
   */
  readonly wasDone?: (said: Reply, through: Platform) => boolean | Promise<boolean>;
  /** What an orchestrator says of it afterwards. */
  readonly state: (through: Platform, done: Done) => Promise<unknown>;
  /** What each of them must say. */
  readonly becomes: unknown;
}

export interface Done {
  /** The answer by which it was done. */
  readonly last: Reply;
  /** Requests before that one that may have been done, too. */
  readonly unheard: number;
}

/** It is not there any more: an earlier request has removed it. */
export const isGone = ({ status }: Reply): boolean => status === 404;
/** Its name is taken: an earlier request has made it. */
export const isTaken = ({ status }: Reply): boolean => status === 409;

/** What was made by a request that has no name of its own: what was answered once, and of each unheard request one at most. */
export function once(ids: readonly string[], answered: string | undefined, { unheard }: Done) {
  const others = ids.filter((id) => id !== answered);
  return { answered: ids.length - others.length, tooMany: others.length > unheard };
}
export const ONCE = { answered: 1, tooMany: false } as const;
