/**
 * Keeps an edge program's routes as an orchestrator has them. When the stream is cut the routes stay, and the edge goes by them
 * as far as nodes confirm them (`isCurrent`), while the next orchestrator is tried.
 */

import { pause } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import {
  type AutoResume,
  type AutoResumeResult,
  type EdgeRoute,
  type EdgeRoutingTable,
  type FindSandbox,
  OrchestratorAway,
  type PausedSandbox,
  type Whereabouts,
} from "../sandbox-lookup.ts";
import { Conversation } from "./conversation.ts";
import type { Result, Said } from "./messages.ts";
import { Replica } from "./replica.ts";
import type { RouteSource } from "./source.ts";

/** How long a question waits for its answer; the orchestrator has a shorter limit of its own. */
const ANSWER_MS = 120_000;
/** Attempts, of about a second each, between two lines in the log that none answers. */
const LOG_EVERY = 60;
const LIST_FRESH_MS = 1_000;
const AGAIN_MS = { first: 50, longest: 1_000 } as const;

export interface FollowerOptions {
  /** The orchestrators, in the order in which they are tried. */
  readonly sources: readonly RouteSource[];
  readonly machineId: string | undefined;
  /** How long a request waits for an orchestrator that can be asked. */
  readonly awayMs: number;
  readonly log: Log;
  /** A random number in [0, 1). */
  readonly random: () => number;
}

export interface Follower {
  readonly routes: EdgeRoutingTable;
  readonly size: number;
  /** Name of the orchestrator that is followed; undefined: none answers. */
  readonly followed: string | undefined;
  readonly docsUrl: string | undefined;
  /** Whether every removal of the orchestrator that is followed is known. */
  isCurrent(): boolean;
  /**
   * Whether every removal is known: no other orchestrator ends sandboxes. Otherwise a route is good for a request that its node
   * confirms, and no container is dialled by its address.
   */
  hasEveryRemoval(): boolean;
  tokenTo(nodeId: string): string;
  /** @throws {OrchestratorAway} */
  readonly autoResume: AutoResume;
  /** @throws {OrchestratorAway} */
  readonly find: FindSandbox;
  /** @throws {OrchestratorAway} */
  pausedSandboxes(): Promise<readonly PausedSandbox[]>;
  /** Resolves when all routes of an orchestrator are known, or the signal aborts. */
  ready(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export function follow({ sources, machineId, awayMs, log, random }: FollowerOptions): Follower {
  const replica = new Replica(machineId);
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  const state: { conversation?: Conversation | undefined } = {};
  /** Attempts in a row that no orchestrator has answered. */
  let silent = -1;
  let list: { readonly at: number; readonly sandboxes: Promise<readonly PausedSandbox[]> } | undefined;
  // A sandbox without a route is found there from then on.
  replica.onRemove((_executionId, _sandboxId, reason) => {
    if (reason === "paused") list = undefined;
  });

  async function once(source: RouteSource): Promise<boolean> {
    const talk = new Conversation(source, replica, {
      log,
      // From now on it can be asked; that its routes are whole is another matter.
      onHello() {
        state.conversation = talk;
        for (const go of waiting) go();
        waiting.clear();
      },
    });
    try {
      await talk.run(stopping.signal);
    } catch (error) {
      silent = talk.greeted ? 0 : silent + 1;
      if (!stopping.signal.aborted && silent % LOG_EVERY === 0)
        log.warn(
          { err: error, orchestrator: source.name, routes: replica.size },
          "no orchestrator is followed: routes are used as far as their nodes confirm them",
        );
    } finally {
      if (state.conversation === talk) state.conversation = undefined;
    }
    return talk.greeted;
  }

  const running = (async () => {
    let delay: number = AGAIN_MS.first;
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      const source = sources[turn % sources.length];
      if (source === undefined) return;
      if (await once(source)) {
        delay = AGAIN_MS.first;
        // The same one again: it may only have been started again.
        turn--;
      }
      await pause(delay * (0.5 + random() / 2), stopping.signal);
      delay = Math.min(AGAIN_MS.longest, delay * 2);
    }
  })();

  /** The conversation that is under way, or comes before the deadline. @throws {OrchestratorAway} */
  async function current(deadline: number): Promise<Conversation> {
    while (state.conversation === undefined) {
      const left = deadline - performance.now();
      if (left <= 0 || stopping.signal.aborted) throw new OrchestratorAway();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, left);
        function done(): void {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        }
        waiting.add(done);
      });
    }
    return state.conversation;
  }

  /** Asks again on the next conversation when this one is cut: each question may be repeated. */
  async function ask(question: (number: number) => Said): Promise<Result> {
    let deadline = performance.now() + awayMs;
    for (;;) {
      const talk = await current(deadline);
      const result = await talk.ask(question, ANSWER_MS);
      if (result !== undefined) return result;
      deadline = performance.now() + awayMs;
    }
  }

  async function readList(): Promise<readonly PausedSandbox[]> {
    const result = await ask((number) => ({ is: "list", number }));
    if (result.is === "list") return result.sandboxes;
    throw new OrchestratorAway();
  }

  return {
    routes: replica,
    get size() {
      return replica.size;
    },
    get followed() {
      return state.conversation?.name;
    },
    get docsUrl() {
      return state.conversation?.docsUrl;
    },
    isCurrent: () => state.conversation?.isCurrent() === true,
    hasEveryRemoval: () => state.conversation?.straight === true && state.conversation.isCurrent(),
    tokenTo: (nodeId) => replica.tokenTo(nodeId),
    async autoResume(sandboxId, port, tokens) {
      const result = await ask((number) => ({ is: "wake", number, sandboxId, port, tokens: wire(tokens) }));
      return resumed(result, replica.lookup(sandboxId));
    },
    async find(sandboxId) {
      const result = await ask((number) => ({ is: "find", number, sandboxId }));
      return found(result, replica.lookup(sandboxId));
    },
    pausedSandboxes() {
      if (list === undefined || performance.now() - list.at > LIST_FRESH_MS) {
        list = { at: performance.now(), sandboxes: readList() };
        list.sandboxes.catch(() => {
          list = undefined;
        });
      }
      return list.sandboxes;
    },
    async ready(signal = stopping.signal) {
      while (state.conversation?.isWhole !== true && !signal.aborted) await pause(20, signal);
    },
    async stop() {
      await state.conversation?.leave();
      stopping.abort();
      for (const go of waiting) go();
      await running;
      await Promise.all(sources.map((source) => source.close()));
    },
  };
}

function resumed(result: Result, route: EdgeRoute | undefined): AutoResumeResult {
  switch (result.is) {
    case "running":
      // It has ended or was paused since.
      return route === undefined ? { is: "transitioning" } : { is: "running", route };
    case "failed":
    case "list":
      throw new OrchestratorAway();
    default:
      return result;
  }
}

function found(result: Result, route: EdgeRoute | undefined): Whereabouts {
  const known = resumed(result, route);
  switch (known.is) {
    case "running":
    case "not_found":
    case "transitioning":
      return known;
    case "paused":
      return { is: "paused", moving: result.is === "paused" && result.moving === true };
    default:
      throw new OrchestratorAway();
  }
}

type Tokens = Parameters<AutoResume>[2];

/** Without the properties that are there and undefined, which the schema does not know. */
function wire({
  trafficAccessTokens,
  envdAccessToken,
  signed,
  apiKey,
}: Tokens): Extract<Said, { is: "wake" }>["tokens"] {
  return {
    ...(trafficAccessTokens === undefined ? {} : { trafficAccessTokens: [...trafficAccessTokens] }),
    ...(envdAccessToken === undefined ? {} : { envdAccessToken }),
    ...(signed === undefined
      ? {}
      : {
          signed: {
            signature: signed.signature,
            path: signed.path,
            operation: signed.operation,
            username: signed.username,
            ...(signed.expiration === undefined ? {} : { expiration: signed.expiration }),
          },
        }),
    ...(apiKey === undefined ? {} : { apiKey }),
  };
}
