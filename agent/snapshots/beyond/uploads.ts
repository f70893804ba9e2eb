/**
 * Uploads what belongs in the blob store, in the background, one at a time of its kind: snapshots (`snapshot-uploads`), images of templates
 * (`image-uploads`). An upload that fails is tried again, and goes on with what is in the store already.
 */

import type { Beyond } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { StoredBeyond, UploadStore } from "../../store/beyond/uploads.ts";
import type { DescribeOptions } from "./describe-snapshot.ts";
import { isDue, type Tried } from "./upload-plan.ts";

const EVERY_MS = 5_000;

/** A snapshot, or an image of a template. */
export interface Subject {
  readonly id: string;
  /** When it was made, unix milliseconds. */
  readonly takenAt: number;
}

/** All of one kind that this node has. */
export interface Subjects<T extends Subject> {
  /** For the name of the rounds. */
  readonly kind: string;
  /** For messages: "snapshot x", "the image of build x". */
  name(id: string): string;
  all(): readonly T[];
  get(id: string): T | undefined;
  /** It belongs in the store. */
  wanted(subject: T): boolean;
  /** It is there, and nothing writes to it: what was uploaded is all of it. */
  rests(subject: T): boolean;
  /** It lives for one call, so it never belongs in the store. Absent: none does. */
  isPassing?(subject: T): Promise<boolean>;
  /** What an upload of it reads at most; absent: not known before. */
  bytes?(subject: T): number;
  /** Which it is, for the log. */
  logged(subject: T): Readonly<Record<string, unknown>>;
  /** Writes one to the store. */
  upload(subject: T, store: ReturnType<ClaimedStore["use"]>, options: DescribeOptions): Promise<StoredBeyond>;
}

export interface UploadsDeps<T extends Subject> {
  readonly of: Subjects<T>;
  readonly store: Pick<ClaimedStore, "name" | "use">;
  readonly stored: UploadStore;
  /** One is stored, or could not be. */
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

/** Counts what the uploads have still to put into the store. */
export interface UploadQueue {
  /** With the one under way, and those that have failed and are tried again. */
  readonly waiting: number;
  /** Of those whose size is known, less what is uploaded of the one under way. */
  readonly bytes: number;
  /** Tries that failed since the agent's start. */
  readonly failures: number;
}

export interface Uploads {
  /** Where it is beside this node; undefined: nowhere, and it is not meant to be. */
  of(id: string): Beyond | undefined;
  /** Its reference was not recorded in time: it is uploaded again. */
  again(id: string): void;
  queue(): UploadQueue;
  start(): void;
  stop(): Promise<void>;
}

interface UnderWay {
  readonly id: string;
  done: { doneBytes: number; totalBytes: number };
}

export function createUploads<T extends Subject>(deps: UploadsDeps<T>): Uploads {
  const { of, store, stored, onChange, now, log, everyMs = EVERY_MS } = deps;
  const tried = new Map<string, Tried>();
  let underWay: UnderWay | undefined;
  let rounds: Loop | undefined;
  let failures = 0;

  const isStill = (id: string) => {
    const found = of.get(id);
    return found !== undefined && of.rests(found);
  };

  const uploadOne = async (subject: T, signal: AbortSignal): Promise<void> => {
    const { id } = subject;
    const gone = new AbortController();
    const own: UnderWay = { id, done: { doneBytes: 0, totalBytes: 0 } };
    underWay = own;
    try {
      const done = await of.upload(subject, store.use(), {
        signal: AbortSignal.any([signal, gone.signal]),
        progress({ doneBytes, totalBytes }) {
          own.done = { doneBytes, totalBytes };
          if (!isStill(id)) gone.abort(new BlobError("changed", `${of.name(id)} was resumed or deleted meanwhile`));
        },
      });
      // What a resume has written meanwhile would not fit its memory.
      if (!isStill(id)) return;
      stored.add(id, done);
      log.info({ ...of.logged(subject), ...done }, `${of.name(id)} is in the blob store`);
    } catch (error) {
      signal.throwIfAborted();
      if (!isStill(id)) return;
      failures++;
      const message = error instanceof Error ? error.message : String(error);
      const times = (tried.get(id)?.times ?? 0) + 1;
      tried.set(id, { times, at: now(), message });
      log.warn({ err: error, ...of.logged(subject), times }, `could not upload ${of.name(id)} yet`);
    } finally {
      underWay = undefined;
    }
    onChange();
  };

  const round = async (signal: AbortSignal) => {
    const all = of.all();
    const ids = new Set(all.map(({ id }) => id));
    for (const id of stored.ids()) if (!ids.has(id)) stored.remove(id);
    for (const id of tried.keys()) if (!ids.has(id)) tried.delete(id);
    const next = all
      .filter((each) => of.wanted(each) && stored.get(each.id) === undefined)
      .filter((each) => isDue(each, tried.get(each.id), now()))
      .sort((a, b) => a.takenAt - b.takenAt);
    for (const subject of next) {
      signal.throwIfAborted();
      if ((await of.isPassing?.(subject)) !== true && isStill(subject.id)) await uploadOne(subject, signal);
    }
  };

  return {
    of(id) {
      const done = stored.get(id);
      if (done !== undefined) return { ...done };
      if (store.name === undefined) return undefined;
      if (underWay?.id === id) return { ...underWay.done };
      const failure = tried.get(id)?.message;
      if (failure !== undefined) return { failure: failure.slice(0, 1_000) };
      const subject = of.get(id);
      return subject !== undefined && of.wanted(subject) ? { doneBytes: 0, totalBytes: 0 } : undefined;
    },
    again(id) {
      if (stored.get(id) === undefined) return;
      stored.remove(id);
      const times = (tried.get(id)?.times ?? 0) + 1;
      tried.set(id, { times, at: now(), message: "it was uploaded, and its reference was not recorded in time" });
    },
    queue() {
      if (store.name === undefined) return { waiting: 0, bytes: 0, failures };
      const there = new Set(stored.ids());
      const waiting = of.all().filter((each) => !there.has(each.id) && of.wanted(each));
      const bytes = waiting.map((each) => {
        const { doneBytes, totalBytes } = underWay?.id === each.id ? underWay.done : { doneBytes: 0, totalBytes: 0 };
        return Math.max(0, (totalBytes === 0 ? (of.bytes?.(each) ?? 0) : totalBytes) - doneBytes);
      });
      return { waiting: waiting.length, bytes: bytes.reduce((sum, each) => sum + each, 0), failures };
    },
    start() {
      if (store.name === undefined) return;
      rounds ??= loop({ name: `uploads of ${of.kind}`, everyMs, log }, round);
    },
    stop: async () => rounds?.stop(),
  };
}
