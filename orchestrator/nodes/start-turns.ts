/**
 * The starts on which each node works at a time for this orchestrator. Further ones wait here: projects take turns, so that one
 * project's many starts delay another's single one by one start at most. Each orchestrator is fair by itself.
 */

import { AppError } from "../../shared/http/errors.ts";
import { createSemaphore, type Semaphore, shareOf } from "../../shared/program/semaphore.ts";
import type { Nodes } from "./nodes.ts";

interface TurnAsk {
  /** Whose turn it takes: a project; its resumes have turns of their own, because people and requests wait for them. */
  readonly owner: string;
  /** When the caller began to wait, unix milliseconds: it keeps its place when it comes again. */
  readonly since: number;
  /** Aborted: the caller waits no longer. */
  readonly signal: AbortSignal;
}

export interface Turn {
  readonly release: () => void;
  /** It was not its turn at once, so the node may have changed meanwhile. */
  readonly waited: boolean;
}

export interface StartTurns {
  /** Rejects with the signal's reason. @throws {AppError} cluster_at_capacity when too many wait */
  take(nodeId: string, ask: TurnAsk): Promise<Turn>;
  /** Starts that wait for each node; none: it is not listed. */
  waiting(): ReadonlyMap<string, number>;
}

/**
 * Turns per start that the node works on: it always has the next ones at hand, and claims of its pool, which take it no time, do not
 * wait for those that do. The node itself has an order for what it has been asked.
 */
const TURNS_PER_START = 4;
/** Of an agent that does not report how many it works on. */
const STARTS_AT_ONCE = 4;
/** Starts that wait for one node. Each holds a request open. */
const MOST_WAITING = 2_000;

/** @param mostWaiting for tests */
export function createStartTurns({ get }: Pick<Nodes, "get">, mostWaiting = MOST_WAITING): StartTurns {
  const mostOfOne = shareOf(mostWaiting);
  /** Only of nodes that work on a start: the next one asks again how many the node takes. */
  const nodes = new Map<string, Semaphore>();

  const of = (nodeId: string): Semaphore => {
    const known = nodes.get(nodeId);
    if (known !== undefined) return known;
    const turns = TURNS_PER_START * (get(nodeId)?.facts.startsAtOnce ?? STARTS_AT_ONCE);
    const semaphore = createSemaphore(turns, shareOf(turns));
    nodes.set(nodeId, semaphore);
    return semaphore;
  };

  const refuseTooMany = (nodeId: string, semaphore: Semaphore, owner: string) => {
    const { waiting } = semaphore;
    const own = semaphore.waitingOf(owner);
    if (waiting < mostWaiting && own < mostOfOne) return;
    const many = own < mostOfOne ? `${waiting} starts wait` : `${own} starts of this project wait`;
    throw new AppError(
      "cluster_at_capacity",
      `Failed to place sandbox: cluster at capacity: ${many} for node ${nodeId}`,
    );
  };

  const tidy = (nodeId: string, semaphore: Semaphore) => {
    if (semaphore.busy === 0 && semaphore.waiting === 0 && nodes.get(nodeId) === semaphore) nodes.delete(nodeId);
  };

  return {
    async take(nodeId, { owner, since, signal }) {
      const semaphore = of(nodeId);
      const waited = !semaphore.isFree(owner);
      if (waited) refuseTooMany(nodeId, semaphore, owner);
      try {
        const release = await semaphore.take(signal, owner, since);
        return {
          waited,
          release() {
            release();
            tidy(nodeId, semaphore);
          },
        };
      } catch (error) {
        tidy(nodeId, semaphore);
        throw error;
      }
    },
    waiting: () =>
      new Map([...nodes].map(([id, { waiting }]) => [id, waiting] as const).filter(([, count]) => count > 0)),
  };
}
