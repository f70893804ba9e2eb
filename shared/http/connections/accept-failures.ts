/** Connections that a server could not accept, as when no descriptor is free: they are logged in few lines, and end no program. */

import type { Log } from "../../program/log.ts";

const SAY_EVERY_MS = 10_000;

interface Listening {
  on(event: "error", listener: (error: Error) => void): unknown;
}

/**
 * Call when the server listens. Later connections are accepted again.
 * @param now milliseconds that only grow
 */
export function logAcceptFailures(
  server: Listening,
  log: Log,
  message = "could not accept a connection",
  now = () => performance.now(),
): void {
  const state = { failures: 0, saidAt: Number.NEGATIVE_INFINITY };
  server.on("error", (error) => {
    state.failures++;
    if (now() - state.saidAt < SAY_EVERY_MS) return;
    // Also those since the line before.
    log.warn({ err: error, failures: state.failures }, message);
    state.failures = 0;
    state.saidAt = now();
  });
}
