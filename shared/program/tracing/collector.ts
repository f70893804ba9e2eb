/** Sends spans to an operator's collector by OTLP over HTTP, in JSON. The only importer of OpenTelemetry. */

import { setTimeout as sleep } from "node:timers/promises";
import { DiagLogLevel, diag, type HrTime, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import { VERSION } from "../../version.ts";
import type { Log } from "../log.ts";
import type { Span, SpanSink, Teller } from "./span.ts";
import type { Trace } from "./trace.ts";

/** Limit of one delivery. What the collector does not take is dropped: spans wait for nobody. */
const SEND_MS = 5_000;
/** Limit of the last delivery, when the program stops. */
const LAST_MS = 2_000;
/** A collector that is away is named once in this time. */
const WARN_MS = 60_000;
const MESSAGE_LENGTH = 300;

/**
 * @param endpoint the collector's address, without `/v1/traces`. The library reads further settings by their own names, for
 *   example headers in `OTEL_EXPORTER_OTLP_HEADERS`.
 */
export function openCollector(endpoint: string, { component, log }: Teller): SpanSink {
  warnThrough(log, endpoint);
  const resource = resourceFromAttributes({ "service.name": `svc-${component}`, "service.version": VERSION });
  const scope = { name: "svc", version: VERSION };
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, "")}/v1/traces`, timeoutMillis: SEND_MS });
  const processor = new BatchSpanProcessor({ exporter, exportTimeoutMillis: SEND_MS, scheduledDelayMillis: 1_000 });
  return {
    take(span) {
      processor.onEnd({ ...readable(span), resource, instrumentationScope: scope });
    },
    async stop() {
      await Promise.race([processor.shutdown().catch(() => undefined), sleep(LAST_MS, undefined, { ref: false })]);
      diag.disable();
    },
  };
}

function readable(span: Span): Omit<ReadableSpan, "resource" | "instrumentationScope"> {
  const { trace, name, kind, begun, ms, attributes, hasFailed } = span;
  return {
    name,
    kind: kind === "server" ? SpanKind.SERVER : SpanKind.INTERNAL,
    spanContext: () => contextOf(trace, trace.spanId),
    ...(trace.parentId === undefined ? {} : { parentSpanContext: contextOf(trace, trace.parentId) }),
    startTime: time(begun),
    endTime: time(begun + ms),
    duration: time(ms),
    status: { code: hasFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function contextOf({ traceId, flags }: Trace, spanId: string) {
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}

/** Seconds and nanoseconds. */
function time(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}

/** The library says what failed to a logger of the process. */
function warnThrough(log: Log, endpoint: string): void {
  let last = Number.NEGATIVE_INFINITY;
  const warn = (message: string) => {
    const now = performance.now();
    if (now - last < WARN_MS) return;
    last = now;
    log.warn(
      { endpoint, reason: message.slice(0, MESSAGE_LENGTH) },
      "the collector does not take spans; they are dropped",
    );
  };
  const ignore = () => undefined;
  diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
}
