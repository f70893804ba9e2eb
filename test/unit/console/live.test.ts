/** The live list of sandboxes: what happens while its stream of events is away is in the list afterwards. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pageFile } from "./page-files.ts";

const { failure, followSandboxes, known, knownOf } = await pageFile<{
  readonly failure: { readonly value: unknown };
  readonly followSandboxes: () => () => void;
  readonly known: { readonly value: ReadonlyMap<string, unknown> };
  readonly knownOf: (project: string | undefined) => ReadonlyMap<string, unknown>;
}>("sandboxes/live.ts");

interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

let rows: readonly string[];
let streams: ReadableStreamDefaultController<Uint8Array>[];
/** The place behind which a stream was asked for, of each. */
let places: (string | undefined)[];
/** The platform keeps no event of before. */
let isForgetful: boolean;
/** The status of a refusal of every stream: 503 where the project has as many as it may. */
let refusal: number | undefined;
/** The status of a refusal of the list. */
let listRefusal: number | undefined;
let stop: () => void;
/** Streams that look whether the page is hidden. */
let lookers: number;

function answer(path: string, { headers, signal }: Sent): Promise<Response> {
  if (!path.startsWith("/console/api/events")) {
    if (listRefusal !== undefined) return refused(listRefusal);
    return Promise.resolve(Response.json(rows.map((sandboxID) => ({ sandboxID }))));
  }
  const place = headers["last-event-id"];
  if (refusal !== undefined) return refused(refusal);
  places.push(place);
  if (isForgetful && place !== undefined) return refused(400);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      streams.push(controller);
      signal?.addEventListener("abort", () => controller.error(new Error("left")));
    },
  });
  return Promise.resolve(new Response(body));
}

const refused = (status: number) => Promise.resolve(Response.json({ message: `refused with ${status}` }, { status }));
const shown = () => [...known.value.keys()];
const write = (text: string) => streams.at(-1)?.enqueue(new TextEncoder().encode(text));

beforeEach(async () => {
  rows = ["first"];
  streams = [];
  places = [];
  isForgetful = false;
  refusal = undefined;
  listRefusal = undefined;
  lookers = 0;
  vi.stubGlobal("document", {
    hidden: false,
    addEventListener: () => lookers++,
    removeEventListener: () => lookers--,
  });
  vi.stubGlobal("fetch", answer);
  stop = followSandboxes();
  await expect.poll(() => [streams.length, shown()]).toEqual([1, ["first"]]);
});
afterEach(async () => {
  stop();
  vi.useRealTimers();
  await expect.poll(() => lookers).toBe(0);
  vi.unstubAllGlobals();
});

test("a list whose stream was lost before its first event is read again", async () => {
  rows = ["second"];
  streams[0]?.close();
  await expect.poll(shown).toEqual(["second"]);
  expect(places).toEqual([undefined, undefined]);
});

test("a stream is resumed behind the last event, and begins again where the platform does not keep the next one", async () => {
  write('id: 7\nevent: a\ndata: {"id":"a"}\n\n');
  streams[0]?.close();
  await expect.poll(() => places).toEqual([undefined, "7"]);
  await expect.poll(() => streams.length).toBe(2);
  isForgetful = true;
  rows = ["second"];
  streams[1]?.close();
  await expect.poll(shown).toEqual(["second"]);
  expect(places).toEqual([undefined, "7", "7", undefined]);
});

test("a list is read as a whole, again and again, where no stream can be opened", async () => {
  stop();
  refusal = 503;
  rows = ["second"];
  stop = followSandboxes();
  await expect.poll(shown).toEqual(["second"]);
  rows = ["third"];
  await expect.poll(shown).toEqual(["third"]);
});

test("the reason is shown where neither the stream nor the list may be read", async () => {
  stop();
  refusal = 403;
  listRefusal = 403;
  stop = followSandboxes();
  await expect.poll(() => failure.value).toMatchObject({ status: 403, message: "refused with 403" });
});

test("the sandboxes of a project are not shown to whoever looks at another one", () => {
  expect([...knownOf(undefined).keys()]).toEqual(["first"]);
  expect([...knownOf("another").keys()]).toEqual([]);
});

test("a stream on which nothing comes for a minute is opened again behind the last event, as after a laptop's sleep", async () => {
  write('id: 7\nevent: a\ndata: {"id":"a"}\n\n');
  vi.useFakeTimers();
  // From this sign of life on the stream is silent.
  write(": still here\n\n");
  await vi.advanceTimersByTimeAsync(61_000);
  vi.useRealTimers();
  await expect.poll(() => places).toEqual([undefined, "7"]);
});
