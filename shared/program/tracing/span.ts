/** What a span is, and who takes and sends them. */

import type { Log } from "../log.ts";
import type { Trace } from "./trace.ts";

export interface Span {
  readonly trace: Trace;
  /** One of few, without ids: `POST /sandboxes/:sandboxID/pause`. */
  readonly name: string;
  /** `server`: it answered a call. `internal`: a part of such work. */
  readonly kind: "server" | "internal";
  /** Milliseconds since 1970, with fractions. */
  readonly begun: number;
  readonly ms: number;
  /** No secrets: they leave the platform. */
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly hasFailed: boolean;
}

export interface SpanSink {
  /** Never waits, and never throws. */
  take(span: Span): void;
  /** Sends what it still has, within a limit of its own. */
  stop(): Promise<void>;
}

export interface Teller {
  /** The program, as its log names it. */
  readonly component: string;
  readonly log: Log;
}
