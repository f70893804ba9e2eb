/** The HTTP proxy of a company that looks into TLS: it shows certificates of its own authority, and answers itself. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import { makeAuthority, makeLeaf, readSigner } from "../../../agent/egress/rewrite/certificates.ts";
import { listening } from "./listening.ts";

interface SeenRequest {
  /** The first line as the proxy got it: `CONNECT host:port`, `GET http://…`. */
  readonly line: string;
  readonly authorization: string | undefined;
}

/** @param address on which it listens */
export async function companyProxy(address = "127.0.0.1") {
  const period = { from: Date.now() - 3_600_000, until: Date.now() + 3_600_000 };
  const authority = await makeAuthority("Company Inspection", period);
  const signer = await readSigner(authority);
  const seen: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const note = ({ method = "", url = "", headers }: IncomingMessage) =>
    void seen.push({ line: `${method} ${url}`, authorization: headers["proxy-authorization"] });
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const team = request.headers["x-team"];
    response.end(
      `inspected ${request.headers.host} ${request.url}${team === undefined ? "" : ` of ${String(team)}`}\n`,
    );
  };
  const inside = createServer(answer);
  const server = createServer((request, response) => {
    note(request);
    answer(request, response);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
  });
  server.on("connect", (request, socket) => {
    note(request);
    const [name = ""] = (request.url ?? "").split(":");
    if (name.startsWith("forbidden.")) return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    void makeLeaf(signer, name, period).then(({ certificate, key }) => {
      socket.write("HTTP/1.1 200 OK\r\nProxy-Agent: company\r\n\r\n");
      const secureContext = createSecureContext({ cert: certificate, key });
      const secure = new TLSSocket(socket, { isServer: true, secureContext });
      secure.on("error", () => undefined);
      inside.emit("connection", secure);
    });
  });
  const port = await listening(server, address);
  return {
    certificate: authority.certificate,
    port,
    seen,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
