import * as fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { errorOfReply, eventsOf, isIdle } from "../../../../interpreter/kernels/jupyter/events.ts";
import { python, r } from "../../../../interpreter/kernels/jupyter/languages.ts";
import { PendingRequest } from "../../../../interpreter/kernels/jupyter/request.ts";
import { textPieces } from "../../../../interpreter/kernels/jupyter/stream-text.ts";
import { decode, encode } from "../../../../interpreter/kernels/jupyter/wire.ts";

const KEY = "secret";
const frames = (key = KEY) =>
  encode(key, { id: "i1", type: "execute_request", session: "s1", content: { code: "é" } }).map((frame) =>
    Buffer.from(frame),
  );
const message = (type: string, content: object) => ({
  header: { msg_id: "m", msg_type: type, date: "2026-01-02T03:04:05.678901Z" },
  parent: "i1",
  content: Buffer.from(JSON.stringify(content)),
});

describe("a message", () => {
  test("is read behind any identities", () => {
    const read = decode(KEY, [Buffer.from("identity"), Buffer.from("topic"), ...frames()]);
    expect(read).toMatchObject({ header: { msg_id: "i1", msg_type: "execute_request" }, parent: undefined });
    expect(read?.content.toString()).toBe('{"code":"é"}');
  });

  test("has six frames, the signature of the last four in hexadecimal", () => {
    const [delimiter, signature, ...parts] = frames().map(String);
    expect(delimiter).toBe("<IDS|MSG>");
    expect(signature).toMatch(/^[0-9a-f]{64}$/);
    expect(parts.map((part) => typeof JSON.parse(part))).toEqual(["object", "object", "object", "object"]);
  });

  test("that is not signed with the key is not read", () => {
    expect(decode(KEY, frames("other"))).toBeUndefined();
    for (let index = 0; index < 6; index += 1) {
      const changed = frames();
      changed[index] = Buffer.concat([changed[index] ?? Buffer.alloc(0), Buffer.from(" ")]);
      expect(decode(KEY, changed)).toBeUndefined();
      expect(decode(KEY, frames().toSpliced(index, 1))).toBeUndefined();
    }
  });
});

describe("the text of a stream", () => {
  test("comes in pieces that join to what it was", () => {
    const content = fc.record({ name: fc.constant("stdout"), text: fc.string({ unit: "binary", maxLength: 200 }) });
    fc.assert(
      fc.property(content, fc.integer({ min: 8, max: 40 }), fc.boolean(), (given, longest, escaped) => {
        const json = JSON.stringify(given);
        const sent = escaped
          ? json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          : json;
        const pieces = [...textPieces(Buffer.from(sent), longest)];
        expect(pieces.join("")).toBe((JSON.parse(Buffer.from(sent).toString()) as typeof given).text);
        expect(pieces.every((piece) => piece.length <= longest + 1 && piece !== "")).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test("is never cut inside of a character", () => {
    for (let longest = 8; longest < 20; longest += 1) {
      for (const text of ['{"name":"stdout","text":"a😀b😀c"}', String.raw`{"text":"a\ud83d\ude00b\ud83d\ude00"}`])
        for (const piece of textPieces(Buffer.from(text), longest)) expect(Buffer.from(piece).toString()).toBe(piece);
    }
  });

  test.each(['{"name":"stdout"}', '{"text":"open', String.raw`{"text":"open\"}`])("of %s is refused", (content) => {
    expect(() => [...textPieces(Buffer.from(content), 10)]).toThrow(SyntaxError);
  });
});

describe("a request", () => {
  afterEach(() => vi.useRealTimers());

  test("whose reply comes while a slow client takes its output is not over before the rest of it", async () => {
    vi.useFakeTimers();
    const taken: string[] = [];
    const pending = new PendingRequest(async (event) => {
      await new Promise((resolve) => setTimeout(resolve, 8_000));
      taken.push("text" in event ? event.text : event.type);
    });
    const over = pending.done.then(() => taken.push("over"));
    const reading = (async () => {
      await pending.output(message("stream", { name: "stdout", text: "1" }));
      await pending.output(message("stream", { name: "stdout", text: "2" }));
      await pending.output(message("status", { execution_state: "idle" }));
    })();
    pending.reply(message("execute_reply", { status: "ok" }));
    await vi.advanceTimersByTimeAsync(20_000);
    await Promise.all([reading, over]);
    expect(taken).toEqual(["1", "2", "over"]);
  });

  test("with a result that no text can hold says so, and goes on", async () => {
    const taken: unknown[] = [];
    const pending = new PendingRequest(async (event) => void taken.push("value" in event ? event.value : event.type));
    const content = Buffer.from("{}");
    content.toString = () => {
      throw new Error("too long");
    };
    await pending.output({ ...message("execute_result", {}), content });
    await pending.output(message("stream", { name: "stdout", text: "1" }));
    expect(taken).toEqual(["output that is too large was left out: too long", "output"]);
  });

  test("whose reply cannot be read fails, and nothing else with it", async () => {
    const pending = new PendingRequest(async () => undefined);
    const over = expect(pending.done).rejects.toThrow(SyntaxError);
    await pending.output(message("status", { execution_state: "idle" }));
    pending.reply({ ...message("execute_reply", {}), content: Buffer.from('{"status": "error", "evalue": ') });
    await over;
  });

  test("that ends before anything waits for it is no failure that nothing handles", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", onUnhandled);
    new PendingRequest().ended({ code: 1, signal: null, said: "" });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onUnhandled);
    expect(unhandled).toEqual([]);
  });

  test("whose idle is lost is over soon after its last output", async () => {
    vi.useFakeTimers();
    const pending = new PendingRequest(async () => undefined);
    pending.reply(message("execute_reply", { status: "ok" }));
    await pending.output(message("stream", { name: "stdout", text: "1" }));
    await vi.advanceTimersByTimeAsync(6_000);
    expect((await pending.done).toString()).toContain("ok");
  });
});

test("a program that prints the word stderr prints it where it does", () => {
  const streamOf = (content: string) =>
    [...eventsOf({ ...message("stream", {}), content: Buffer.from(content) })].map(
      (event) => "stream" in event && event.stream,
    );
  expect(streamOf('{"name": "stdout", "text": "stderr"}')).toEqual(["stdout"]);
  expect(streamOf('{"text":"stderr","name":"stdout"}')).toEqual(["stdout"]);
  expect(streamOf('{"name": "stderr", "text": "stdout"}')).toEqual(["stderr"]);
  expect(streamOf('{"text":"x","name":"stderr"}')).toEqual(["stderr"]);
});

test("messages become events, and those that clients do not get become none", () => {
  const events = [
    message("execute_input", { code: "1", execution_count: 3 }),
    message("stream", { name: "stderr", text: '"stdout"' }),
    message("stream", { text: '\\"stderr\\"', name: "stdout" }),
    message("display_data", { data: { "image/png": "eA==" }, metadata: {} }),
    message("execute_result", { data: { "text/plain": "1" }, execution_count: 3 }),
    message("error", { ename: "E", evalue: "v", traceback: ["a", "b"] }),
    message("update_display_data", { data: {} }),
    message("clear_output", { wait: true }),
    message("status", { execution_state: "busy" }),
  ].flatMap((each) => [...eventsOf(each)]);
  const timestamp = "2026-01-02T03:04:05.678901Z";
  expect(events).toEqual([
    { type: "count", count: 3 },
    { type: "output", stream: "stderr", text: '"stdout"', timestamp },
    { type: "output", stream: "stdout", text: '\\"stderr\\"', timestamp },
    { type: "result", main: false, bundle: new Map([["image/png", '"eA=="']]) },
    { type: "result", main: true, bundle: new Map([["text/plain", '"1"']]) },
    { type: "error", name: "E", value: "v", traceback: "ab" },
  ]);
});

test("only the state idle ends a run", () => {
  expect(isIdle(message("status", { execution_state: "idle" }))).toBe(true);
  expect(isIdle(message("status", { execution_state: "busy" }))).toBe(false);
  expect(isIdle(message("stream", { execution_state: "idle" }))).toBe(false);
});

test("a reply has an error when it failed or was aborted", () => {
  const of = (content: object) => errorOfReply(Buffer.from(JSON.stringify(content)));
  expect(of({ status: "ok" })).toBeUndefined();
  expect(of({ status: "aborted" })).toMatchObject({ name: "ExecutionAborted" });
  expect(of({ status: "error", ename: "E", evalue: "v", traceback: [] })).toMatchObject({ name: "E", value: "v" });
});

const HOSTILE = { set: { A: `"'\\\n$(x)é😀` }, remove: ["B"], cwd: "/a'b\"c", reseed: true };

test("a change for Python is one call with a string of ASCII that has the change as JSON", () => {
  const code = python("python3", "/p").changeCode(HOSTILE);
  const [, argument = ""] = /^__import__\("svc_kernel"\)\.refresh\((.*)\)$/.exec(code) ?? [];
  expect(argument).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(JSON.parse(argument) as string)).toEqual(HOSTILE);
  expect(python("python3", "/p").command("/f")).toEqual(["python3", "/p/launch.py", "-f", "/f"]);
});

test("a change for R has no character of a value that could end a string", () => {
  const code = r("R").changeCode(HOSTILE);
  expect(code).toContain(String.raw`"\U{22}'\U{5c}\U{a}$(x)\U{e9}\U{1f600}"`);
  expect(code).toContain('Sys.unsetenv("B")');
  expect(code).toContain(String.raw`setwd("/a'b\U{22}c")`);
});
