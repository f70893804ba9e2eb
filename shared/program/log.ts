/** Structured logs: JSON lines on stdout, secrets redacted once, here. The only importer of pino. */

import { type DestinationStream, type Logger, pino } from "pino";
import { SECRET_KEYS } from "./secret-names.ts";
import { currentTrace } from "./tracing/trace.ts";

export type Log = Logger;

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** At these depths of a logged object a secret is redacted. */
const DEPTHS = ["", "*.", "*.*."];

export interface LogOptions {
  /** The program's name, on every line. */
  readonly component: string;
  readonly level?: LogLevel;
  readonly destination?: DestinationStream;
}

export function createLog({ component, level = "info", destination }: LogOptions): Log {
  const options = {
    level,
    base: { component },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: traceField,
    // Serialized like `err`, because the redaction copies values, and a DOMException (of a time limit) cannot be copied.
    serializers: { cause: (value: unknown) => (value instanceof Error ? pino.stdSerializers.err(value) : value) },
    redact: {
      paths: SECRET_KEYS.flatMap((key) => DEPTHS.map((depth) => join(depth, key))),
      censor: "[redacted]",
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** The lines of one request have its trace id, in every program that it has reached. */
function traceField(): object {
  const trace = currentTrace();
  return trace === undefined ? {} : { traceId: trace.traceId };
}

function join(depth: string, key: string): string {
  return key.startsWith("[") ? `${depth.slice(0, -1)}${key}` : `${depth}${key}`;
}
