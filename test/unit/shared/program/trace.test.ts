import { expect, test } from "vitest";
import { createLog } from "../../../../shared/program/log.ts";
import {
  currentTrace,
  inTrace,
  isRecorded,
  partOf,
  traceFrom,
  traceHeader,
  traceparentOf,
} from "../../../../shared/program/tracing/trace.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const ZEROS = "0".repeat(32);

test("a hop of a caller's trace has its id and flags, and a span of its own", () => {
  const hop = traceFrom(`00-${TRACE}-${PARENT}-01`);
  expect(hop).toMatchObject({ traceId: TRACE, parentId: PARENT, flags: "01" });
  expect(hop.spanId).toMatch(/^[0-9a-f]{16}$/);
  expect(hop.spanId).not.toBe(PARENT);
  expect(traceparentOf(hop)).toBe(`00-${TRACE}-${hop.spanId}-01`);
});

test("a new trace is recorded where that is asked for, and a caller's as the caller says", () => {
  expect(isRecorded(traceFrom(undefined))).toBe(false);
  expect(isRecorded(traceFrom(undefined, true))).toBe(true);
  expect(isRecorded(traceFrom(`00-${TRACE}-${PARENT}-00`, true))).toBe(false);
  expect(isRecorded(traceFrom(`00-${TRACE}-${PARENT}-03`))).toBe(true);
});

test("a part of a hop is its child", () => {
  const hop = traceFrom(`00-${TRACE}-${PARENT}-01`);
  const part = partOf(hop);
  expect(part).toMatchObject({ traceId: TRACE, parentId: hop.spanId, flags: "01" });
  expect(part.spanId).not.toBe(hop.spanId);
});

test("a later version of the header may have more fields, of which the known ones count", () => {
  expect(traceFrom(`01-${TRACE}-${PARENT}-00-more`).traceId).toBe(TRACE);
});

test.each([
  ["no header", undefined],
  ["several headers", [`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01`]],
  ["a text", "none"],
  ["capital letters", `00-${TRACE.toUpperCase()}-${PARENT}-01`],
  ["a trace of zeros", `00-${ZEROS}-${PARENT}-01`],
  ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["a forbidden version", `ff-${TRACE}-${PARENT}-01`],
  ["more fields than the version has", `00-${TRACE}-${PARENT}-01-more`],
  ["a line break", `00-${TRACE}-${PARENT}-01\nlevel: fatal`],
] as const)("%s begins a new trace, which nobody records", (_case, header) => {
  const [one, two] = [traceFrom(header), traceFrom(header)];
  expect(one).toMatchObject({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/) as string, flags: "00" });
  expect(one.traceId).not.toBe(TRACE);
  expect(one.traceId).not.toBe(two.traceId);
});

test("lines of the log and calls have the trace of the work that makes them, also after a wait", async () => {
  const lines: string[] = [];
  const log = createLog({ component: "test", destination: { write: (line) => lines.push(line) } });
  const hop = traceFrom(`00-${TRACE}-${PARENT}-01`);
  await inTrace(hop, async () => {
    await new Promise(setImmediate);
    log.child({ part: "one" }).info({ sandboxId: "i1" }, "within");
    expect(traceHeader()).toEqual({ traceparent: traceparentOf(hop) });
  });
  log.info("outside");
  expect(lines.map((line) => (JSON.parse(line) as { traceId?: string }).traceId)).toEqual([TRACE, undefined]);
  expect([currentTrace(), traceHeader()]).toEqual([undefined, {}]);
});
