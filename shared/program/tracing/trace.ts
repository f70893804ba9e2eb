/**
 * The trace of the work under way, by W3C Trace Context: a caller's `traceparent` goes with each call that the work makes, and its trace
 * id is on each line of the log. Work that continues after its request is still of its trace.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

export const TRACEPARENT = "traceparent";

export interface Trace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of this hop: 16 hexadecimal digits. */
  readonly spanId: string;
  /** Of the hop that called; undefined where the trace begins here. */
  readonly parentId: string | undefined;
  /** Two hexadecimal digits: whether the caller records the trace. */
  readonly flags: string;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NOT_RECORDED = "00";
const RECORDED = "01";
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

const traces = new AsyncLocalStorage<Trace>();

/**
 * This hop in the caller's trace; in a new one when the header is absent or has no valid form.
 * @param isRecorded whether a new one is recorded; a caller's is when the caller says so
 */
export function traceFrom(header: string | readonly string[] | undefined, isRecorded = false): Trace {
  const [, version, traceId = "", parentId = "", flags = NOT_RECORDED, more] =
    FORM.exec(typeof header === "string" ? header.trim() : "") ?? [];
  const isValid =
    version !== undefined &&
    version !== "ff" &&
    !(version === "00" && more !== undefined) &&
    !isZeros(traceId) &&
    !isZeros(parentId);
  const spanId = newSpanId();
  if (isValid) return { traceId, spanId, parentId, flags };
  return {
    traceId: randomBytes(TRACE_BYTES).toString("hex"),
    spanId,
    parentId: undefined,
    flags: isRecorded ? RECORDED : NOT_RECORDED,
  };
}

/** A part of this hop's work, as a hop of its own. */
export function partOf({ traceId, spanId, flags }: Trace): Trace {
  return { traceId, spanId: newSpanId(), parentId: spanId, flags };
}

/** The last bit of the flags (Trace Context, 3.2.2.5.1). */
export function isRecorded({ flags }: Trace): boolean {
  return (Number.parseInt(flags, 16) & 1) === 1;
}

function newSpanId(): string {
  return randomBytes(SPAN_BYTES).toString("hex");
}

export function traceparentOf({ traceId, spanId, flags }: Trace): string {
  return `00-${traceId}-${spanId}-${flags}`;
}

export function inTrace<T>(trace: Trace, work: () => T): T {
  return traces.run(trace, work);
}

/** Undefined: the program works by itself. */
export function currentTrace(): Trace | undefined {
  return traces.getStore();
}

/** The header of a call to another program of the platform; none where the program works by itself. */
export function traceHeader(): Readonly<Record<string, string>> {
  const trace = traces.getStore();
  return trace === undefined ? {} : { [TRACEPARENT]: traceparentOf(trace) };
}

function isZeros(digits: string): boolean {
  return /^0*$/.test(digits);
}
