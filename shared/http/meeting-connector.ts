/** Opens the connections of a client to another machine of the platform: TLS with the credentials of that moment. */

import { buildConnector } from "undici";
import { clientOptions, type Meeting } from "../tls/peers.ts";

/** For undici. Plain HTTP stays plain: the caller has chosen the address. */
export function connectorFor(meeting: Meeting): buildConnector.connector {
  return (target, done) => {
    // Made anew for each connection, because a renewal changes the credentials. A kept session would skip the look at the name.
    buildConnector({ ...clientOptions(meeting), maxCachedSessions: 0 } as buildConnector.BuildOptions)(target, done);
  };
}
