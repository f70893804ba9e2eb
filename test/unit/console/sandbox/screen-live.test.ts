/** The live screen of a sandbox: a program in the form of a WebSocket, and what the page does when the screen ends. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { pageFile } from "../page-files.ts";

interface Channel {
  readonly readyState: string;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: Uint8Array }) => void) | null;
  onclose: ((event: object) => void) | null;
  send(bytes: Uint8Array): void;
  close(): void;
  open(): void;
}

const { ProgramChannel, pump } = await pageFile<{
  readonly ProgramChannel: new (ways: { send(base64: string): Promise<unknown>; failed(why: Error): void }) => Channel;
  readonly pump: (
    messages: AsyncIterable<unknown>,
    channel: Channel,
    paced: () => Promise<void>,
  ) => Promise<{ readonly exitCode: number; readonly errors: string }>;
}>("sandbox/screen/channel.ts");
const { afterEnding, NoScreen, Refused, ServerEnded } = await pageFile<
  Record<"NoScreen" | "Refused" | "ServerEnded", new (message?: string) => Error> & {
    readonly afterEnding: (error: unknown, tries: number) => string;
  }
>("sandbox/screen/endings.ts");
const { keepLive } = await pageFile<{
  readonly keepLive: (
    id: string,
    show: (left: AbortSignal) => Promise<void>,
    telling: { state(text: string): void; instead(why: unknown): void; ended(): void },
    left: AbortSignal,
  ) => Promise<void>;
}>("sandbox/screen/keep-live.ts");
const { Failed } = await pageFile<{
  readonly Failed: new (message: string, facts: { readonly status: number; readonly code?: string }) => Error;
}>("base/failed.ts");

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64");

async function* streamOf(...events: readonly object[]): AsyncGenerator<unknown> {
  for (const event of events) yield { event };
}

/** A channel that is open; `answer` lets the program take the piece that is on its way. */
function opened() {
  const sent: string[] = [];
  const failures: string[] = [];
  const answers: { resolve: () => void; reject: (why: Error) => void }[] = [];
  const channel = new ProgramChannel({
    send: (piece) => {
      sent.push(Buffer.from(piece, "base64").toString());
      return new Promise<void>((resolve, reject) => answers.push({ resolve, reject }));
    },
    failed: (why) => void failures.push(why.message),
  });
  channel.open();
  return { channel, sent, failures, answers };
}

describe("the channel of a live screen", () => {
  test("has what the client looks for in a WebSocket", () => {
    const { channel } = opened();
    const names = [...Object.keys(channel), ...Object.getOwnPropertyNames(Object.getPrototypeOf(channel))];
    for (const name of "send close binaryType onerror onmessage onopen protocol readyState".split(" "))
      expect(names).toContain(name);
  });

  test("sends input in its order, one piece at a time, and takes no part of a buffer that is used again", async () => {
    const { channel, sent, answers } = opened();
    const buffer = new TextEncoder().encode("a");
    for (const letter of "abc") {
      buffer[0] = letter.charCodeAt(0);
      channel.send(buffer);
    }
    await vi.waitFor(() => expect(sent).toEqual(["abc"]));
    channel.send(new TextEncoder().encode("d"));
    channel.send(new TextEncoder().encode("e"));
    await Promise.resolve();
    expect(sent).toEqual(["abc"]);
    answers[0]?.resolve();
    await vi.waitFor(() => expect(sent).toEqual(["abc", "de"]));
  });

  test("fails when a piece is lost, and sends nothing behind it", async () => {
    const { channel, sent, failures, answers } = opened();
    channel.send(new TextEncoder().encode("a"));
    await vi.waitFor(() => expect(sent).toEqual(["a"]));
    channel.send(new TextEncoder().encode("b"));
    answers[0]?.reject(new Error("nothing has answered"));
    await vi.waitFor(() => expect(failures).toEqual([expect.stringContaining("nothing has answered")]));
    channel.send(new TextEncoder().encode("c"));
    await Promise.resolve();
    expect(sent).toEqual(["a"]);
  });

  test("fails when the program takes nothing of what a page keeps sending", async () => {
    const { channel, sent, failures } = opened();
    channel.send(new Uint8Array(10));
    await vi.waitFor(() => expect(sent).toHaveLength(1));
    for (let times = 0; times < 10_000; times++) channel.send(new Uint8Array(10));
    expect(failures).toEqual(["the screen's server does not take what the page sends"]);
  });

  test("tells of its close once and later, and then passes nothing on", async () => {
    const { channel, sent } = opened();
    const closed = vi.fn();
    channel.onclose = closed;
    channel.close();
    channel.close();
    expect(closed).not.toHaveBeenCalled();
    await Promise.resolve();
    expect(closed).toHaveBeenCalledTimes(1);
    channel.send(new Uint8Array(1));
    await Promise.resolve();
    expect(sent).toEqual([]);
  });
});

describe("what a program prints", () => {
  const connecting = () => new ProgramChannel({ send: () => Promise.resolve(), failed: () => undefined });

  test("reaches the client in its order, in pieces, each when the page has time", async () => {
    const channel = connecting();
    const came: Uint8Array[] = [];
    const order: string[] = [];
    channel.onopen = () => void order.push("open");
    channel.onmessage = ({ data }) => {
      came.push(data.slice());
      order.push("piece");
    };
    const large = Uint8Array.from({ length: 70_000 }, (_, at) => at % 251);
    const { exitCode, errors } = await pump(
      streamOf(
        { start: { pid: 7 } },
        { data: { stdout: base64(large) } },
        { keepalive: {} },
        { data: { stderr: base64("no such display") } },
        { data: { stdout: base64("end") } },
        { end: { exitCode: 4 } },
      ),
      channel,
      () => Promise.resolve(void order.push("turn")),
    );
    expect([exitCode, errors]).toEqual([4, "no such display"]);
    expect(Buffer.concat(came).equals(Buffer.concat([large, Buffer.from("end")]))).toBe(true);
    expect(order).toEqual(["open", ...Array.from({ length: 4 }, () => ["piece", "turn"]).flat()]);
    expect(Math.max(...came.map(({ length }) => length))).toBe(32 * 1024);
  });

  test("is not read on when the client or the page refuses it", async () => {
    const events = [{ start: { pid: 7 } }, { data: { stdout: base64("x") } }, { end: {} }];
    const broken = connecting();
    broken.onmessage = () => {
      throw new RangeError("Invalid typed array length");
    };
    const turn = () => Promise.resolve();
    await expect(pump(streamOf(...events), broken, turn)).rejects.toThrow(Refused);
    const refuse = () => Promise.reject(new Refused("too much"));
    await expect(pump(streamOf(...events), connecting(), refuse)).rejects.toThrow("too much");
  });

  test("and then stops without an end is a lost connection", async () => {
    const turn = () => Promise.resolve();
    await expect(pump(streamOf({ start: { pid: 7 } }), connecting(), turn)).rejects.toThrow("the connection was lost");
  });
});

test.each([
  ["has no such programs", new NoScreen(), 0, "instead"],
  ["sends what the page does not draw", new Refused("a screen of 65535 × 65535 pixels"), 0, "instead"],
  ["has a server that ended", new ServerEnded("no such display"), 2, "again"],
  ["has a server that ended three times", new ServerEnded("no such display"), 3, "instead"],
  ["stands still", new Failed("the sandbox is paused", { status: 409 }), 9, "again"],
  ["is not reached", new Failed("nothing answers", { status: 0 }), 9, "again"],
  ["is of somebody else", new Failed("no such sandbox", { status: 404 }), 0, "instead"],
])("of a sandbox that %s the page knows whether to open the screen again", (_what, error, tries, next) => {
  expect(afterEnding(error, tries)).toBe(next);
});

describe("the live screen", () => {
  interface Document extends EventTarget {
    hidden: boolean;
  }

  /** A page over a sandbox that runs. */
  function page(): Document {
    const document = Object.assign(new EventTarget(), { hidden: false });
    vi.stubGlobal("document", document);
    vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ state: "running" })));
    return document;
  }

  function telling() {
    const told: unknown[] = [];
    const instead = (why: unknown) => void told.push(why);
    return { told, telling: { state: () => undefined, instead, ended: () => void told.push("ended") } };
  }

  test("whose server ends each time is given up after the third time, with the reason", async () => {
    vi.useFakeTimers();
    page();
    const { told, telling: to } = telling();
    let times = 0;
    const show = () => Promise.reject(new ServerEnded(`no such display, ${++times}`));
    const kept = keepLive("i1", show, to, new AbortController().signal);
    await vi.runAllTimersAsync();
    await kept;
    expect(told).toEqual([new ServerEnded("no such display, 3")]);
  });

  test("rests while the page is hidden, and ends when the tab is left", async () => {
    const document = page();
    const { told, telling: to } = telling();
    const left = new AbortController();
    const shown: AbortSignal[] = [];
    const show = (signal: AbortSignal) => {
      shown.push(signal);
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    const kept = keepLive("i1", show, to, left.signal);
    const see = (isSeen: boolean) => {
      document.hidden = !isSeen;
      document.dispatchEvent(new Event("visibilitychange"));
    };
    await vi.waitFor(() => expect(shown).toHaveLength(1));
    see(false);
    await vi.waitFor(() => expect(shown[0]?.aborted).toBe(true));
    await new Promise((resolve) => setTimeout(resolve));
    expect(shown).toHaveLength(1);
    see(true);
    await vi.waitFor(() => expect(shown).toHaveLength(2));
    left.abort();
    await kept;
    expect([shown[1]?.aborted, told]).toEqual([true, []]);
  });
});
