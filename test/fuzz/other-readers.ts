/** What other programs make of the same bytes: OpenSSL of a TLS hello, Node's parser of a request. */

import { createServer, type IncomingMessage, type Server } from "node:http";
import { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";

/** A connection whose client has sent these bytes, and that ends after them. What is written to it is thrown away. */
function connectionWith(input: Buffer): Duplex {
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  connection.push(input);
  connection.push(null);
  return connection;
}

/** Who has said nothing by then has seen nothing. */
const SILENCE_MS = 50;

const context = createSecureContext();

/** The name that a TLS server of this machine's OpenSSL would choose a certificate by; undefined when it sees none. */
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
    // It says nothing about some ends that come too early.
    const limit = setTimeout(finish, SILENCE_MS);
    server.on("error", () => finish()).on("close", () => finish());
    server.resume();
  });
}

/** Host and target of the first request, or undefined when Node's HTTP server takes none. */
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
