/**
 * Keeps a copy of a snapshot ready for the next rewind to it. A search goes back to the same state again and again: the first rewind of a
 * sandbox to a snapshot makes a copy in the background, and each that takes one makes the next. There is one for each sandbox, for
 * that sandbox alone, and none longer than the sandbox runs, or than its snapshot is there.
 */

import { withDeadline, within } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import { sameSize } from "../../containers/cgroup/limits.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { CopyAsk, MakeSignals } from "./rewind-copy.ts";

export interface ReadyCopies {
  /** Begins to make one, in the place of an earlier one of the sandbox. Never throws. */
  prepare(ask: CopyAsk): void;
  /** It leaves for good. Waits a while for one that is being made; undefined: there is none, or it could not be made. @throws the signal's reason */
  take(ask: CopyAsk, signal: AbortSignal): Promise<LiveContainer | undefined>;
  /** Call when a container has ended unexpectedly. True when it was one of these. */
  lost(containerId: string): boolean;
  /** Containers that should run. */
  ids(): string[];
  /** Removes all, and waits for that. */
  stop(): Promise<void>;
}

interface ReadyCopiesDeps {
  /** Leaves no container behind when it rejects. */
  readonly make: (ask: CopyAsk, signals: MakeSignals) => Promise<LiveContainer>;
  readonly dispose: (container: LiveContainer) => Promise<void>;
  /** Also while it is rewound. */
  readonly isRunning: (sandboxId: string) => boolean;
  readonly isStored: (snapshotId: string) => boolean;
  /** How long one waits; 0: none is made. */
  readonly keepMs: number;
  readonly freeMemory: () => number;
  /** Bytes that stay free. */
  readonly reservedMemory: number;
  /** Bytes of memory that all of them may have together. */
  readonly memoryBound: number;
  readonly now: () => number;
  readonly log: Log;
}

const ROUND_MS = 1_000;
/** Between a rewind and the begin of the next copy: the caller's first commands go first. */
const REST_MS = 150;
const MAKE_LIMIT_MS = 30_000;
/** Longest wait of a rewind for one that is being made, and may itself wait for a turn: then the rewind makes its own. */
const WAIT_LIMIT_MS = 5_000;
/** The copy of a larger disk costs more than a rewind in vain is worth. */
const MOST_DISK_BYTES = 256 * 1024 * 1024;

interface Entry extends CopyAsk {
  readonly since: number;
  readonly cancel: AbortController;
  /** Undefined once it has failed. */
  readonly made: Promise<LiveContainer | undefined>;
  /** Whether its making has begun. */
  begun: boolean;
  container: LiveContainer | undefined;
}

export function createReadyCopies(deps: ReadyCopiesDeps): ReadyCopies {
  const { make, dispose, isRunning, isStored, keepMs, freeMemory, reservedMemory, memoryBound, now, log } = deps;
  /** By sandbox. */
  const entries = new Map<string, Entry>();
  const background = new Set<Promise<void>>();

  const inBackground = (work: Promise<unknown>) => {
    const done = work
      .then(() => undefined)
      .catch((error: unknown) => log.warn({ err: error }, "could not remove a copy for the next rewind"))
      .finally(() => background.delete(done));
    background.add(done);
  };

  const drop = (entry: Entry) => {
    if (entries.get(entry.body.sandboxId) === entry) entries.delete(entry.body.sandboxId);
    entry.cancel.abort();
    inBackground(entry.made.then((container) => (container === undefined ? undefined : dispose(container))));
  };

  const hasRoom = ({ snapshot: { memoryBytes } }: CopyAsk) => {
    const taken = [...entries.values()].reduce((sum, { snapshot }) => sum + snapshot.memoryBytes, 0);
    return taken + memoryBytes <= memoryBound && freeMemory() - memoryBytes >= reservedMemory;
  };

  const begin = async (ask: CopyAsk, signal: AbortSignal, begun: () => void) => {
    try {
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
      signal.throwIfAborted();
      begun();
      return await within(MAKE_LIMIT_MS, (limit) => make(ask, { calledOff: signal, limit }));
    } catch (error) {
      const { sandboxId } = ask.body;
      if (!signal.aborted) log.warn({ err: error, sandboxId }, "could not make a copy for the next rewind");
      return undefined;
    }
  };

  const rounds = loop({ name: "copies for rewinds", everyMs: ROUND_MS, log }, () => {
    for (const entry of entries.values()) {
      const isOver = now() - entry.since >= keepMs || !isRunning(entry.body.sandboxId);
      if (isOver || !isStored(entry.snapshot.id)) drop(entry);
    }
    const [oldest] = entries.values();
    if (oldest !== undefined && freeMemory() < reservedMemory) drop(oldest);
  });

  return {
    prepare(ask) {
      const { sandboxId, volumes = [] } = ask.body;
      const former = entries.get(sandboxId);
      if (former !== undefined) drop(former);
      const { memory, image, diskBytes } = ask.snapshot;
      if (keepMs === 0 || !memory || image === undefined || volumes.length > 0) return;
      if (diskBytes > MOST_DISK_BYTES || !hasRoom(ask)) return;
      const cancel = new AbortController();
      const made = begin(ask, cancel.signal, () => {
        entry.begun = true;
      });
      const entry: Entry = { ...ask, since: now(), cancel, made, begun: false, container: undefined };
      entries.set(sandboxId, entry);
      void made.then((container) => {
        entry.container = container;
        if (container === undefined && entries.get(sandboxId) === entry) entries.delete(sandboxId);
      });
    },
    async take(ask, signal) {
      const entry = entries.get(ask.body.sandboxId);
      if (entry === undefined || !fits(entry, ask)) return undefined;
      // Nothing is won by waiting for one that has not begun.
      if (!entry.begun) {
        drop(entry);
        return undefined;
      }
      entries.delete(ask.body.sandboxId);
      const container = await within(WAIT_LIMIT_MS, (limit) =>
        withDeadline(entry.made, AbortSignal.any([signal, limit]), () => undefined),
      );
      if (container !== undefined && !signal.aborted && container.cgroup.alive()) return container;
      drop(entry);
      signal.throwIfAborted();
      return undefined;
    },
    lost(containerId) {
      const entry = [...entries.values()].find(({ container }) => container?.id === containerId);
      if (entry !== undefined) drop(entry);
      return entry !== undefined;
    },
    ids: () => [...entries.values()].flatMap(({ container }) => (container === undefined ? [] : [container.id])),
    async stop() {
      await rounds.stop();
      for (const entry of entries.values()) drop(entry);
      await Promise.all(background);
    },
  };
}

function fits(entry: CopyAsk, { body, snapshot }: CopyAsk): boolean {
  const { volumes = [], resources, build } = body;
  const own = entry.body;
  return (
    volumes.length === 0 &&
    entry.snapshot.id === snapshot.id &&
    own.build.buildId === build.buildId &&
    own.resources.diskSizeMB === resources.diskSizeMB &&
    sameSize(own.resources, resources)
  );
}
