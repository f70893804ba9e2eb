/** Other programs that read the same bytes: OpenSSL reads a TLS hello, Node's HTTP server reads a request. */

import { createServer, type IncomingMessage, type Server } from "node:http";
import { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";

/** A connection whose client sends these bytes and then ends. It discards what the server writes. */
function connectionWith(input: Buffer): Duplex {
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  connection.push(input);
  connection.push(null);
  return connection;
}

/** A reader that reports nothing within this time has found nothing. */
const SILENCE_MS = 50;

const context = createSecureContext();

/**
 * Resolves to the name by which a TLS server of this machine's OpenSSL would choose a certificate; undefined when it sees
 * none.
 */
export function nameSeenByOpenssl(hello: Buffer): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = new TLSSocket(connectionWith(hello), {
      isServer: true,
      secureContext: context,
      SNICallback: (name) => finish(name),
    });
    const finish = (name?: string) => {
      clearTimeout(limit);
      resolve(name);
      setImmediate(() => server.destroy());
    };
    // The TLS server reports nothing when some inputs end too early.
    const limit = setTimeout(finish, SILENCE_MS);
    server.on("error", () => finish()).on("close", () => finish());
    server.resume();
  });
}

/** Resolves to the host and target of the first request, or to undefined when Node's HTTP server accepts none. */
export function hostSeenByNode(input: Buffer): Promise<{ host: string; url: string } | undefined> {
  return new Promise((resolve) => {
    const server: Server = createServer();
    const connection = connectionWith(input);
    const finish = (seen?: { host: string; url: string }) => {
      clearTimeout(limit);
      resolve(seen);
      connection.destroy();
    };
    const limit = setTimeout(finish, SILENCE_MS);
    const take = ({ headers, url }: IncomingMessage) => finish({ host: headers.host ?? "", url: url ?? "" });
    for (const event of ["request", "checkContinue", "checkExpectation", "upgrade", "connect"]) server.on(event, take);
    server.on("clientError", () => finish());
    connection.on("close", () => finish());
    server.emit("connection", connection);
  });
}
