/** Opens the connections of a client to another machine of the platform: TLS with the credentials of that moment. */

import { buildConnector } from "undici";
import { clientOptions, type Meeting } from "../../tls/peers.ts";

const CONNECT_LIMIT_MS = 10_000;

/**
 * For undici. Plain HTTP stays plain: the caller has chosen the address.
 * @param timeoutMs for the connection and its handshake
 */
export function connectorFor(meeting: Meeting, timeoutMs = CONNECT_LIMIT_MS): buildConnector.connector {
  return (target, done) => {
    // Made anew for each connection, because a renewal changes the credentials. A kept session would skip the look at the name.
    buildConnector({
      ...clientOptions(meeting),
      maxCachedSessions: 0,
      timeout: timeoutMs,
    } as buildConnector.BuildOptions)(target, done);
  };
}
