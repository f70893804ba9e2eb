/**
 * Live streams of events (Server-Sent Events). A stream reads the database from the place that it has reached whenever its
 * project has a new event, so it skips none and holds none in memory; a reader that does not keep up is cut, and resumes.
 */

import { Readable } from "node:stream";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { EventFilter } from "../store/events/events.ts";
import type { Store } from "../store/store.ts";
import type { EventRow } from "../store/tables.ts";
import { toEvent } from "./view.ts";

export interface EventStreamsDeps {
  readonly store: Store;
  readonly log: Log;
  readonly limits?: Partial<StreamLimits>;
}

interface StreamLimits {
  readonly perProject: number;
  readonly total: number;
  /** Time between two comments on a quiet stream. */
  readonly heartbeatMs: number;
  /** How long a reader may leave what was written to it. */
  readonly slowMs: number;
}

export interface EventStreams {
  /**
   * @param after sequence of the last event that the reader has; absent: the stream begins now
   * @throws {AppError} unavailable: there are too many streams, or the platform stops
   */
  open(projectId: string, filter: EventFilter, after: number | undefined): Promise<Readable>;
  /** The project has a new event; absent: any project may have one. */
  added(projectId?: string): void;
  /** Number of open streams. */
  readonly size: number;
  /** Ends every stream. */
  stop(): void;
}

const LIMITS: StreamLimits = { perProject: 32, total: 512, heartbeatMs: 15_000, slowMs: 30_000 };
/** Events of one read. */
const BATCH = 100;
/** Bytes that a stream may hold for its reader. */
const HELD_BYTES = 64 * 1024;
/** Clients wait so long before they connect again. */
const RETRY_MS = 2_000;

interface Stream {
  readonly projectId: string;
  wake(): void;
  end(): void;
}

export function createEventStreams({ store, log, limits }: EventStreamsDeps): EventStreams {
  const { perProject, total, heartbeatMs, slowMs } = { ...LIMITS, ...limits };
  const streams = new Set<Stream>();
  const state = { stopped: false };

  function checkRoom(projectId: string): void {
    if (state.stopped) throw new AppError("unavailable", "the platform is stopping", { retryAfterSeconds: 1 });
    const mine = [...streams].filter((stream) => stream.projectId === projectId).length;
    const full = mine >= perProject ? `the project has ${perProject}` : `there are ${total}`;
    if (mine >= perProject || streams.size >= total) {
      throw new AppError("unavailable", `${full} streams of events, the most at a time`, { retryAfterSeconds: 30 });
    }
  }

  function start(projectId: string, filter: EventFilter, from: number): Readable {
    const at = { place: from, isReading: false, wantsMore: true, flows: true, ended: false };
    let slow: NodeJS.Timeout | undefined;
    const body = new Readable({ highWaterMark: HELD_BYTES, read: resume });

    /** Cuts the stream later unless the reader takes what it holds. */
    function write(text: string): void {
      if (body.destroyed || at.ended || body.push(text)) return;
      at.flows = false;
      slow ??= setTimeout(() => {
        log.info({ projectId }, "cut a stream of events whose reader is too slow");
        body.destroy();
      }, slowMs);
    }

    function resume(): void {
      at.flows = true;
      clearTimeout(slow);
      slow = undefined;
      void pump();
    }

    /** Writes what is new until there is nothing left or the reader is behind. */
    async function pump(): Promise<void> {
      if (at.isReading) return;
      at.isReading = true;
      try {
        while (at.wantsMore && at.flows && !body.destroyed && !at.ended) {
          at.wantsMore = false;
          const newest = await store.events.newest();
          const rows = await store.events.read(projectId, filter, { limit: BATCH, ascending: true, after: at.place });
          // What the filter leaves out is not read again.
          if (rows.length === 0) at.place = Math.max(at.place, newest);
          if (rows.length === BATCH) at.wantsMore = true;
          for (const row of rows) {
            at.place = row.sequence;
            write(frame(row));
            if (at.flows) continue;
            at.wantsMore = true;
            break;
          }
        }
      } catch (error) {
        log.warn({ err: error, projectId }, "could not read events for a stream");
        body.destroy();
      } finally {
        at.isReading = false;
      }
    }

    const stream: Stream = {
      projectId,
      wake() {
        at.wantsMore = true;
        void pump();
      },
      end() {
        if (at.ended) return;
        at.ended = true;
        // A reader that is behind would hold up the end.
        if (at.flows) body.push(null);
        else body.destroy();
      },
    };
    const heartbeat = setInterval(() => {
      if (at.flows) write(": heartbeat\n\n");
      // An earlier read may have failed, and an event may have come without news of it.
      stream.wake();
    }, heartbeatMs);
    streams.add(stream);
    body.once("close", () => {
      clearInterval(heartbeat);
      clearTimeout(slow);
      streams.delete(stream);
    });
    write(`retry: ${RETRY_MS}\n: events\n\n`);
    return body;
  }

  return {
    async open(projectId, filter, after) {
      checkRoom(projectId);
      const from = after ?? (await store.events.newest());
      checkRoom(projectId);
      return start(projectId, filter, from);
    },
    added(projectId) {
      for (const stream of streams) if (projectId === undefined || stream.projectId === projectId) stream.wake();
    },
    get size() {
      return streams.size;
    },
    stop() {
      state.stopped = true;
      for (const stream of streams) stream.end();
    },
  };
}

function frame(row: EventRow): string {
  return `id: ${row.sequence}\nevent: ${row.type}\ndata: ${JSON.stringify(toEvent(row))}\n\n`;
}
