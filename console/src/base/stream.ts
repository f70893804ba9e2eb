/**
 * The one live stream of the project's events. It resumes behind the last event that it has seen, and rests while nobody
 * looks at the page, because a browser has few connections to one host.
 */

import type { PlatformEvent } from "../../../shared/api/events.ts";
import { API, send } from "./client.ts";
import { Failed } from "./failed.ts";
import { beforeSilence } from "./silence.ts";

export interface Watching {
  /** An event has come. */
  event(event: PlatformEvent): void;
  /**
   * The stream is open, or it is broken and will be opened again.
   * @param isResumed it goes on behind the last event; otherwise it begins now, and what happened before is in no event of it
   */
  state(isLive: boolean, isResumed: boolean): void;
}

const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Returns the function that ends the stream. */
export function watchEvents(watching: Watching): () => void {
  const ended = new AbortController();
  void run(watching, ended.signal);
  return () => ended.abort();
}

async function run(watching: Watching, ended: AbortSignal): Promise<void> {
  let lastId: string | undefined;
  let wait = SHORTEST_WAIT_MS;
  while (!ended.aborted) {
    await untilVisible(ended);
    const rest = new AbortController();
    let isRefused = false;
    const hide = () => {
      if (document.hidden) rest.abort();
    };
    document.addEventListener("visibilitychange", hide);
    try {
      const isResumed = lastId !== undefined;
      const answer = await send("GET", `${API}/events`, {
        headers: { accept: "text/event-stream", ...(lastId === undefined ? {} : { "last-event-id": lastId }) },
        signal: anyOf([ended, rest.signal]),
      });
      watching.state(true, isResumed);
      wait = SHORTEST_WAIT_MS;
      for await (const { id, data } of frames(answer)) {
        lastId = id ?? lastId;
        if (data !== "") watching.event(JSON.parse(data) as PlatformEvent);
      }
    } catch (error) {
      // Nobody is logged in any more, or the key may not read: a further try would fail too.
      isRefused = error instanceof Failed && (error.status === 401 || error.status === 403);
      // The platform does not keep any more what came behind that event.
      if (error instanceof Failed && error.status === 400) lastId = undefined;
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
    watching.state(false, false);
    if (isRefused) break;
    if (document.hidden) continue;
    await pause(wait, ended);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

async function* frames(answer: Response): AsyncGenerator<{ readonly id: string | undefined; readonly data: string }> {
  if (answer.body === null) return;
  let held = "";
  for await (const text of chunks(answer.body.pipeThrough(new TextDecoderStream()))) {
    held += text;
    const whole = held.split("\n\n");
    held = whole.pop() ?? "";
    for (const frame of whole) yield { id: field(frame, "id"), data: field(frame, "data") ?? "" };
  }
}

async function* chunks<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await beforeSilence(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function field(frame: string, name: string): string | undefined {
  const line = frame.split("\n").find((each) => each.startsWith(`${name}: `));
  return line?.slice(name.length + 2);
}

/** Resolves also when `ended` is aborted. */
export function untilVisible(ended: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !ended.aborted) return;
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    ended.addEventListener("abort", done, { once: true });
  });
}

/** Aborted with the first of them. Safari before 17.4 and Firefox before 124 cannot do that themselves. */
export function anyOf(signals: readonly AbortSignal[]): AbortSignal {
  if ("any" in AbortSignal) return AbortSignal.any([...signals]);
  const first = new AbortController();
  for (const each of signals) {
    if (each.aborted) first.abort(each.reason);
    else each.addEventListener("abort", () => first.abort(each.reason), { once: true, signal: first.signal });
  }
  return first.signal;
}

export function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      ended.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    ended.addEventListener("abort", done);
  });
}
