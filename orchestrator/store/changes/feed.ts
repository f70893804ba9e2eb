/**
 * Reads what other orchestrators have changed: every second, and at once when one announces a change. While it cannot look
 * or is not told, nothing from memory may be used that a change may have revoked.
 */

import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { News } from "../postgres/news.ts";
import { type Change, type ChangeLog, KEPT_MS, TRUST_MS } from "./changes.ts";
import type { Kind } from "./record.ts";

/** Forgets, or reads again, what this process knows of these subjects. Undefined: of all. */
type Forget = (subjects: readonly string[] | undefined) => unknown;

export interface Feed {
  /** Whether what a change may have revoked can be used from memory. */
  readonly current: boolean;
  on(kind: Kind, forget: Forget): void;
  start(): void;
  stop(): Promise<void>;
}

interface FeedDeps {
  readonly changes: ChangeLog;
  readonly listen: (told: { onNews(): void; onListening(): void; onLost(): void }) => News;
  readonly log: Log;
}

const EVERY_MS = 1_000;
/** Those whose makers wait until everybody has forgotten. */
const CONFIRMED: ReadonlySet<Kind> = new Set(["key", "project", "node"]);

/** For the only process on its database: nobody else changes anything. */
export const quietFeed: Feed = {
  current: true,
  on: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
};

/** Resolves when changes that are made from now on will be read. */
export async function createFeed({ changes, listen, log }: FeedDeps): Promise<Feed> {
  const forgetting = new Map<Kind, Forget[]>();
  const state = {
    since: (await changes.read(undefined)).next,
    lookedAt: performance.now(),
    looking: undefined as Loop | undefined,
    news: undefined as News | undefined,
  };
  /** Changes after `since` that were read already. */
  let seen = new Set<string>();

  async function pass(kind: Kind, subjects: readonly string[] | undefined): Promise<void> {
    for (const forget of forgetting.get(kind) ?? []) await forget(subjects);
  }

  async function look(): Promise<void> {
    const asked = performance.now();
    const { changes: found, next } = await changes.read(state.since);
    if (asked - state.lookedAt > KEPT_MS / 2) for (const kind of forgetting.keys()) await pass(kind, undefined);
    const fresh = found.filter(({ id }) => !seen.has(id));
    for (const [kind, some] of byKind(fresh)) await pass(kind, [...new Set(some.map(({ subject }) => subject))]);
    await changes.confirm(fresh.filter(({ kind }) => CONFIRMED.has(kind)).map(({ id }) => id));
    seen = new Set(found.map(({ id }) => id));
    state.since = next;
    state.lookedAt = asked;
  }

  return {
    get current() {
      return state.news?.listens === true && performance.now() - state.lookedAt < TRUST_MS;
    },
    on(kind, forget) {
      forgetting.set(kind, [...(forgetting.get(kind) ?? []), forget]);
    },
    start() {
      const looking = loop({ name: "changes of other orchestrators", everyMs: EVERY_MS, log }, look);
      const wake = () => looking.wake();
      state.looking = looking;
      state.news = listen({ onNews: wake, onListening: wake, onLost: wake });
    },
    async stop() {
      await state.news?.stop();
      await state.looking?.stop();
    },
  };
}

function byKind(changes: readonly Change[]): Map<Kind, Change[]> {
  const kinds = new Map<Kind, Change[]>();
  for (const change of changes) kinds.set(change.kind, [...(kinds.get(change.kind) ?? []), change]);
  return kinds;
}
