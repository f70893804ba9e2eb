/** The minimum pace of a request body, measured with a clock of the test's own. */

import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isError } from "../../../../../shared/http/errors.ts";
import { pacedBody } from "../../../../../shared/http/requests/body.ts";

const PACE = { leastBytes: 10, everyMs: 10_000 };

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const settled = () => new Promise((resolve) => setImmediate(resolve));

function read() {
  const request = new PassThrough();
  const body = pacedBody(request, PACE);
  const seen = { text: "", ended: false, error: undefined as unknown };
  body.on("data", (chunk: Buffer) => (seen.text += chunk.toString()));
  body.on("end", () => (seen.ended = true));
  body.on("error", (error) => (seen.error = error));
  return { request, body, seen };
}

test("a body that sends enough bytes in every span has no time limit", async () => {
  const { request, seen } = read();
  for (let span = 0; span < 100; span++) {
    request.write("0123456789");
    await settled();
    vi.advanceTimersByTime(PACE.everyMs);
  }
  request.end();
  await settled();
  expect(seen).toEqual({ text: "0123456789".repeat(100), ended: true, error: undefined });
  expect(vi.getTimerCount()).toBe(0);
});

test("a body that brings less in one span ends with request_timeout, and leaves no timer", async () => {
  const { request, seen } = read();
  request.write("0123456789");
  await settled();
  vi.advanceTimersByTime(PACE.everyMs);
  request.write("012345678");
  await settled();
  expect(seen.error).toBeUndefined();
  vi.advanceTimersByTime(PACE.everyMs);
  await settled();
  expect(isError(seen.error, "request_timeout")).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("a body that ends by the timer while nothing listens to it raises no uncaught exception", async () => {
  const raised: unknown[] = [];
  const note = (error: unknown) => raised.push(error);
  process.on("uncaughtException", note);
  try {
    const body = pacedBody(new PassThrough(), PACE);
    vi.advanceTimersByTime(PACE.everyMs);
    await settled();
    expect(body.destroyed).toBe(true);
    await settled();
    expect(raised).toEqual([]);
  } finally {
    process.off("uncaughtException", note);
  }
});

test("a body is not ended while its reader takes nothing", async () => {
  const request = new PassThrough();
  const body = pacedBody(request, PACE);
  request.write(Buffer.alloc(1024 * 1024));
  await settled();
  vi.advanceTimersByTime(10 * PACE.everyMs);
  await settled();
  expect(body.destroyed).toBe(false);
});

test("a client that leaves in the middle ends the body with its error, and no timer is left", async () => {
  const { request, seen } = read();
  request.destroy(new Error("aborted"));
  await settled();
  expect(seen.error).toEqual(new Error("aborted"));
  expect(vi.getTimerCount()).toBe(0);
});
