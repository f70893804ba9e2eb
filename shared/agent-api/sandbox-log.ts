/** A line of a sandbox's log, as it is kept on the node and shown by the API. */

import { type Static, Type } from "typebox";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export const LogEntry = Type.Object({
  /** RFC 3339. */
  timestamp: Type.String(),
  level: Type.Enum([...LOG_LEVELS]),
  message: Type.String(),
  fields: Type.Record(Type.String(), Type.String()),
});
export type LogEntry = Static<typeof LogEntry>;
