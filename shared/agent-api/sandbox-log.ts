/** A line of a sandbox's log, as the node stores it and the API shows it. */

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
