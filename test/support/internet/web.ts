/** HTTP and HTTPS on every address of the test internet: each answer names the server, and repeats the request. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createSecureContext, type TLSSocket } from "node:tls";

import { WebSocketServer } from "ws";
import type { Certificate } from "./certificates.ts";
import { PORT } from "./plan.ts";
import type { Records } from "./records.ts";

/** A page for those who have logged in. It counts over a WebSocket, which it opens again when it has ended. */
const SITE = `<title>a site</title><p id=who>WHO</p><input id=field><div style="height: 5000px"></div><script>
var n = 0, opened = 0;
const open = () => {
  const socket = new WebSocket(location.href.replace(/^http/, "ws"));
  socket.onopen = () => { opened++; socket.send(++n) };
  socket.onmessage = () => setTimeout(() => socket.readyState === 1 && socket.send(++n), 100);
  socket.onclose = () => setTimeout(open, 300);
};
open();
</script>`;

type Asked = IncomingMessage | Http2ServerRequest;
type Answered = ServerResponse | Http2ServerResponse;

export async function serveWeb(certificateOf: (name: string) => Promise<Certificate>, records: Records): Promise<void> {
  const sockets = new WebSocketServer({ noServer: true });
  sockets.on("connection", (socket) =>
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })),
  );
  const handle = (request: Asked, response: Answered) => {
    note(request, records);
    void answer(request, response);
  };
  const upgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    note(request, records);
    sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit("connection", opened, request));
  };
  const plain = () => createServer(handle).on("upgrade", upgrade);
  const secure = async () =>
    createSecureServer({
      allowHTTP1: true,
      ALPNProtocols: ["h2", "http/1.1"],
      // The certificate for clients that send no name.
      ...(await certificateOf("nameless.invalid")),
      SNICallback: (name, done) => {
        void certificateOf(name.toLowerCase()).then(createSecureContext).then(done.bind(undefined, null), done);
      },
    })
      .on("request", handle)
      .on("upgrade", upgrade)
      .on("sessionError", () => undefined);
  const servers = [
    [plain(), 80],
    [plain(), PORT.http],
    [await secure(), 443],
    [await secure(), PORT.tls],
  ] as const;
  for (const [server, port] of servers) {
    server.on("connection", (socket: Socket) => {
      socket.on("error", () => undefined);
      records.add({ is: "connection", service: "web", address: socket.localAddress ?? "", port });
    });
    server.on("clientError", (_error: Error, socket: Socket) => socket.destroy());
    await new Promise<void>((resolve) => {
      server.listen(port, "0.0.0.0", 4096, resolve);
    });
  }
}

async function answer(request: Asked, response: Answered): Promise<void> {
  const url = new URL(request.url ?? "/", "http://any");
  const bytes = /^\/bytes\/(\d+)$/.exec(url.pathname)?.[1];
  if (bytes !== undefined) {
    await zeros(response, Number(bytes));
    return;
  }
  let received = 0;
  for await (const chunk of request) received += (chunk as Buffer).length;
  const status = Number(/^\/status\/(\d{3})$/.exec(url.pathname)?.[1] ?? 200);
  const to = url.searchParams.get("to");
  if (url.pathname === "/redirect" && to !== null) {
    head(response, 302, { location: to });
    response.end();
  } else if (url.pathname === "/repository.git/info/refs") {
    // git's old protocol over plain files, which is enough for ls-remote.
    head(response, 200, { "content-type": "text/plain" });
    response.end(`${"1".repeat(40)}\trefs/heads/main\n`);
  } else if (url.pathname === "/log-in") {
    head(response, 302, { location: "/site", "set-cookie": `who=${url.searchParams.get("who") ?? ""}; Path=/` });
    response.end();
  } else if (url.pathname === "/site") {
    head(response, 200, { "content-type": "text/html" });
    response.end(SITE.replace("WHO", /who=(\w+)/.exec(String(request.headers.cookie))?.[1] ?? "nobody"));
  } else if (url.pathname.startsWith("/v1/")) {
    // As an API of models, which repeats nothing of the request: a key among its headers must not come back.
    head(response, 401, { "content-type": "application/json" });
    response.end(JSON.stringify({ type: "error", error: { type: "authentication_error", message: "no account" } }));
  } else {
    head(response, status, { "content-type": "application/json" });
    response.end(`${JSON.stringify({ ...about(request), received })}\n`);
  }
}

// The signatures of `writeHead` in HTTP/1.1 and HTTP/2 have no call in common.
function head(response: Answered, status: number, headers: Readonly<Record<string, string | number>>): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

async function zeros(response: Answered, length: number): Promise<void> {
  head(response, 200, { "content-length": length });
  const block = Buffer.alloc(1 << 16);
  const whole = Math.floor(length / block.length);
  const pieces = function* () {
    for (let count = 0; count < whole; count++) yield block;
    yield block.subarray(0, length % block.length);
  };
  // Nothing needs to be reported when a client leaves half way.
  await pipeline(Readable.from(pieces()), response).catch(() => undefined);
}

function about(request: Asked) {
  const socket = request.socket as Partial<TLSSocket> & Socket;
  const sni = typeof socket.servername === "string" ? socket.servername : undefined;
  return {
    address: socket.localAddress ?? "",
    port: socket.localPort ?? 0,
    ...(sni === undefined ? {} : { sni }),
    host: String(request.headers.host ?? request.headers[":authority"] ?? ""),
    method: request.method ?? "",
    url: request.url ?? "",
    headers: Object.fromEntries(
      Object.entries(request.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    httpVersion: request.httpVersion,
  };
}

function note(request: Asked, records: Records): void {
  records.add({ is: "request", ...about(request) });
}
