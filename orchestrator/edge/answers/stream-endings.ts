/** The error frames with which the edge ends Connect streams. Pure. */

import type { StreamError } from "../../../shared/proxy/connect-envelope.ts";
import type { RemovalReason } from "../sandbox-lookup.ts";

export const STOPPING: StreamError = { code: "unavailable", message: "The edge is restarting; try again." };

export function endingOf(reason: RemovalReason | undefined): StreamError {
  const message =
    reason === "paused"
      ? "The sandbox was paused while the request was in flight."
      : "The sandbox was killed or reached its end of life while the request was in flight.";
  return { code: "unavailable", message };
}
