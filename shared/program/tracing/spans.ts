/**
 * What this process has done for recorded traces, for an operator's collector. Without a collector (`withSpans`) nothing is kept and
 * nothing of the library is loaded.
 */

import type { Stoppable } from "../run.ts";
import type { Span, SpanSink, Teller } from "./span.ts";
import { currentTrace, isRecorded, partOf } from "./trace.ts";

/** One of a process, as its log is. */
let sink: SpanSink | undefined;

/** Whether spans go anywhere. */
export function areSpansKept(): boolean {
  return sink !== undefined;
}

/** Keeps a span whose trace is recorded. */
export function keepSpan(span: Span): void {
  if (isRecorded(span.trace)) sink?.take(span);
}

/** Keeps a part of the work under way as a span of its own. @param begun by `performance.now()` */
export function keepPart(name: string, begun: number, ms: number): void {
  const trace = sink === undefined ? undefined : currentTrace();
  if (trace === undefined) return;
  keepSpan({
    trace: partOf(trace),
    name,
    kind: "internal",
    begun: sinceEpoch(begun),
    ms,
    attributes: {},
    hasFailed: false,
  });
}

/** The moment of `performance.now()`, in milliseconds since 1970. */
export function sinceEpoch(moment: number): number {
  return performance.timeOrigin + moment;
}

/**
 * Starts a program whose spans go to the collector at `endpoint` for as long as the program runs.
 * @param endpoint for example `http://127.0.0.1:4318`, OTLP over HTTP; undefined or empty: spans are not kept
 */
export async function withSpans(
  endpoint: string | undefined,
  teller: Teller,
  start: () => Promise<Stoppable>,
): Promise<Stoppable> {
  if (endpoint === undefined || endpoint === "") return start();
  const { openCollector } = await import("./collector.ts");
  const own = openCollector(endpoint, teller);
  sink = own;
  const close = async () => {
    if (sink === own) sink = undefined;
    await own.stop();
  };
  try {
    const program = await start();
    return {
      ...program,
      async stop() {
        try {
          await program.stop();
        } finally {
          await close();
        }
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
