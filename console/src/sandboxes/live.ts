/**
 * The project's sandboxes as they are now: listed once, then changed one by one as events name them. Many changes at a time
 * are taken together, and more than a few hundred make the list be read again, so that a storm freezes nothing.
 */

import { signal } from "@preact/signals";
import type { PlatformEvent } from "../../../shared/api/events.ts";
import type { ListedSandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get, pages } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { projectId } from "../base/session.ts";
import { watchEvents } from "../base/stream.ts";

/** What a row shows. */
export type SandboxRow = Pick<
  ListedSandbox,
  "sandboxID" | "templateID" | "alias" | "state" | "startedAt" | "endAt" | "metadata"
>;

export const known = signal<ReadonlyMap<string, SandboxRow>>(new Map());
export const isLive = signal(false);
export const isWhole = signal(false);
export const failure = signal<unknown>(undefined);

/** The project that `known` is of. */
const of = { project: projectId.peek() };

/** Time in which changes are taken together. */
const TOGETHER_MS = 300;
/** More changed sandboxes than these are not read one by one. */
const ONE_BY_ONE = 50;
/** Shortest time between two readings of the whole list. */
const AGAIN_MS = 3_000;
/** As many as a screen shows, so that the first answer is a fast one; and the most that one request gets. */
const FIRST_ROWS = 60;
const MOST_ROWS = 500;

/** Returns the function that stops following. */
export function followSandboxes(): () => void {
  if (of.project !== projectId.peek()) known.value = new Map();
  of.project = projectId.peek();
  const left = new AbortController();
  const changed = new Set<string>();
  /** `isStale`: the list has to be read as a whole, because its last reading failed or events were missed. */
  const state = { timer: 0, wasLive: false, isReading: false, isStale: false, readAt: 0 };

  async function readAll(): Promise<void> {
    isWhole.value = false;
    state.isStale = false;
    try {
      const all = await pages<SandboxRow>("/rows", left.signal, {
        limit: MOST_ROWS,
        // The first page is of use at once. Showing every further one would take longer than reading it.
        soFar: (items) => {
          if (items.length >= 2 * known.value.size) known.value = byId(items);
        },
      });
      known.value = byId(all);
      isWhole.value = true;
      failure.value = undefined;
    } catch (error) {
      state.isStale = true;
      if (!left.signal.aborted) failure.value = error;
    }
    state.readAt = performance.now();
  }

  /** Shows the newest ones while the stream is being opened; the whole list is read after that. */
  async function readFirst(): Promise<void> {
    if (known.value.size > 0) return;
    const first = await get<SandboxRow[]>("/rows", { limit: FIRST_ROWS }, left.signal);
    if (known.value.size === 0) known.value = byId(first);
  }

  async function readChanged(): Promise<void> {
    const ids = [...changed];
    changed.clear();
    if (state.isStale || ids.length > ONE_BY_ONE) {
      await readAll();
      return;
    }
    const read = await Promise.all(ids.map((id) => readOne(id, left.signal)));
    if (left.signal.aborted) return;
    const next = new Map(known.value);
    for (const [index, id] of ids.entries()) {
      const item = read[index];
      if (item === undefined) next.delete(id);
      else next.set(id, item);
    }
    known.value = next;
  }

  function note({ sandboxId = "" }: PlatformEvent): void {
    if (sandboxId === "") return;
    changed.add(sandboxId);
    schedule();
  }

  /** One reading at a time: an older one that ends later would bring back what is gone. */
  function schedule(): void {
    if (state.timer !== 0 || state.isReading || left.signal.aborted) return;
    if (changed.size === 0 && !state.isStale) return;
    const rest = state.readAt + AGAIN_MS - performance.now();
    const wait = state.isStale || changed.size > ONE_BY_ONE ? Math.max(TOGETHER_MS, rest) : TOGETHER_MS;
    state.timer = setTimeout(() => {
      state.timer = 0;
      void reading(readChanged);
    }, wait) as unknown as number;
  }

  async function reading(work: () => Promise<void>): Promise<void> {
    state.isReading = true;
    await work();
    state.isReading = false;
    schedule();
  }

  // What goes wrong here goes wrong with the whole list too, and is shown then.
  readFirst().catch(() => undefined);
  const stop = watchEvents({
    event: note,
    state(live, isResumed) {
      if (left.signal.aborted) return;
      isLive.value = live;
      state.wasLive ||= live;
      // What happened before a stream is in no event of it. Where none opens, each try reads the list.
      const isMissing = live ? !isResumed : !state.wasLive && !document.hidden;
      if (!isMissing) return;
      if (state.isReading) state.isStale = true;
      else {
        clearTimeout(state.timer);
        state.timer = 0;
        void reading(readAll);
      }
    },
  });
  return () => {
    left.abort();
    clearTimeout(state.timer);
    stop();
    isLive.value = false;
  };
}

/** The sandboxes of this project that the list has read last; none while they are those of another one. */
export function knownOf(project: string | undefined): ReadonlyMap<string, SandboxRow> {
  return of.project === project ? known.value : new Map();
}

function byId(items: readonly SandboxRow[]): ReadonlyMap<string, SandboxRow> {
  return new Map(items.map((item) => [item.sandboxID, item]));
}

/** Undefined: it has ended, and the platform may have forgotten it. */
async function readOne(id: string, signal: AbortSignal): Promise<SandboxRow | undefined> {
  try {
    const sandbox = await get<ListedSandbox>(`/sandboxes/${encodeURIComponent(id)}`, { ended: true }, signal);
    return sandbox.state === "ended" ? undefined : sandbox;
  } catch (error) {
    if (error instanceof Failed && error.status === 404) return undefined;
    return known.value.get(id);
  }
}
