/** Servers on every address of their network namespace; they report over IPC which connections came. */

import { createSocket } from "node:dgram";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { decode, encode } from "dns-packet";
import { ALLOWED, BEHIND_PROXY, DEAD, NODE, OTHER, PROXY, RESOLVER, WWW } from "./plan.ts";

export type Seen =
  | { readonly is: "up" }
  | {
      readonly is: "tcp";
      readonly address: string;
      readonly port: number;
      readonly from: string;
      readonly first: string;
    }
  | { readonly is: "dns"; readonly name: string; readonly type: string; readonly bytes: number }
  | {
      readonly is: "request";
      readonly address: string;
      readonly host: string;
      readonly path: string;
      readonly added: string;
    }
  | {
      readonly is: "socks";
      readonly host: string;
      readonly port: number;
      readonly kind: number;
      readonly user: string;
    };

const ZONE: Readonly<Record<string, readonly string[]>> = {
  "allowed.test": [ALLOWED],
  "www.allowed.test": [WWW],
  "other.test": [OTHER],
  "metadata.test": ["169.254.169.254"],
  "mixed.test": ["10.0.0.1", ALLOWED],
  "node.test": [NODE],
  "dead.test": [DEAD, ALLOWED],
  "proxy.test": [PROXY],
};

const say = (seen: Seen) => process.send?.(seen);

/** Answers each piece with the address to which it came, and the piece itself. */
function echo(socket: Socket) {
  let known = false;
  socket.on("data", (chunk) => {
    if (!known) said(socket, chunk.toString("latin1", 0, 200));
    known = true;
    socket.write(`[${socket.localAddress}:${socket.localPort}] ${chunk.toString("latin1")}`, "latin1");
  });
  socket.on("end", () => socket.end());
}

/** Sends a greeting first, as an SSH server does. */
function banner(socket: Socket) {
  said(socket, "");
  socket.write("SSH-2.0-test\r\n");
  socket.on("end", () => socket.end());
  socket.resume();
}

/** Answers only after the other direction has ended. */
function afterEnd(socket: Socket) {
  let bytes = 0;
  said(socket, "");
  socket.on("data", (chunk) => {
    bytes += chunk.length;
  });
  socket.on("end", () => socket.end(`got ${bytes}`));
}

const CHUNK = Buffer.alloc(1 << 20, "x");

/** Sends as many bytes as the first line asks for. */
function much(socket: Socket) {
  socket.once("data", (chunk) => {
    let left = Number(chunk.toString());
    const more = () => {
      while (left > 0) {
        const part = CHUNK.subarray(0, Math.min(left, CHUNK.length));
        left -= part.length;
        if (!socket.write(part)) return void socket.once("drain", more);
      }
      socket.end();
    };
    more();
  });
}

/** Sends a few bytes, then resets the connection. */
function reset(socket: Socket) {
  socket.write("some", () => setTimeout(() => socket.resetAndDestroy(), 50));
  socket.resume();
}

function said(socket: Socket, first: string) {
  say({
    is: "tcp",
    address: socket.localAddress ?? "",
    port: socket.localPort ?? 0,
    from: socket.remoteAddress ?? "",
    first,
  });
}

/** A SOCKS5 proxy on every address; a client with a user name needs the password "secret". */
function socks(socket: Socket) {
  let bytes = Buffer.alloc(0);
  let user = "";
  let step: (() => void) | undefined = greeting;
  socket.on("data", onData);

  function onData(chunk: Buffer) {
    bytes = Buffer.concat([bytes, chunk]);
    step?.();
  }
  function greeting() {
    const count = bytes[1] ?? 0;
    if (bytes.length < 2 + count) return;
    const login = bytes.subarray(2, 2 + count).includes(2);
    bytes = bytes.subarray(2 + count);
    step = login ? credentials : request;
    socket.write(Buffer.from([5, login ? 2 : 0]));
  }
  function credentials() {
    const length = bytes[1] ?? 0;
    user = bytes.toString("latin1", 2, 2 + length);
    const password = bytes.toString("latin1", 3 + length, 3 + length + (bytes[2 + length] ?? 0));
    const good = user === "user" && password === "secret";
    bytes = Buffer.alloc(0);
    step = request;
    socket.write(Buffer.from([1, good ? 0 : 1]));
    if (!good) socket.end();
  }
  function request() {
    if (bytes.length < 7) return;
    const kind = bytes[3] ?? 0;
    const at = kind === 1 ? 4 : 5;
    const raw = bytes.subarray(at, at + (kind === 1 ? 4 : (bytes[4] ?? 0)));
    const host = kind === 1 ? raw.join(".") : raw.toString("latin1");
    const port = bytes.readUInt16BE(at + raw.length);
    socket.off("data", onData);
    socket.pause();
    say({ is: "socks", host, port, kind, user });
    const address = kind === 1 ? host : (ZONE[host]?.[0] ?? BEHIND_PROXY);
    const upstream = connect({ host: address, port, allowHalfOpen: true });
    upstream.on("error", () => socket.resetAndDestroy());
    upstream.once("data", (chunk: Buffer) => void early.push(chunk));
    const early: Buffer[] = [];
    upstream.once("connect", () => {
      // The server's first bytes go together with the proxy's answer.
      setTimeout(() => {
        socket.write(Buffer.concat([Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...early]));
        upstream.pipe(socket);
        socket.pipe(upstream);
      }, 20);
    });
  }
}

const servers: Readonly<Record<number, (socket: Socket) => void>> = {
  22: banner,
  443: echo,
  8443: echo,
  1080: socks,
  5001: much,
  5002: reset,
  11371: afterEnd,
};

for (const [port, serve] of Object.entries(servers)) {
  createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    serve(socket);
  }).listen(Number(port), "0.0.0.0", 4_096);
}

createHttpServer((request, response) => {
  const address = request.socket.localAddress ?? "";
  const { host = "", "x-added": added = "" } = request.headers;
  say({ is: "request", address, host, path: request.url ?? "", added: String(added) });
  response.end(`served by ${address}`);
}).listen(80, "0.0.0.0");

const rebinding = { asked: 0 };
const dns = createSocket("udp4");
dns.on("message", (message, from) => {
  const query = decode(message);
  const [question] = query.questions ?? [];
  if (question === undefined) return;
  const name = question.name.toLowerCase();
  say({ is: "dns", name: question.name, type: question.type, bytes: message.length });
  rebinding.asked += name === "rebind.test" ? 1 : 0;
  const list = name === "rebind.test" ? [rebinding.asked % 2 === 1 ? ALLOWED : "169.254.169.254"] : ZONE[name];
  const wildcard = name.endsWith(".wild.test") ? [ALLOWED] : undefined;
  const addresses = list ?? wildcard;
  const ttl = name === "rebind.test" ? 0 : 30;
  dns.send(
    encode({
      type: "response",
      id: query.id ?? 0,
      flags: 0x0180 | (addresses === undefined ? 3 : 0),
      questions: [question],
      answers:
        question.type === "A" ? (addresses ?? []).map((data) => ({ type: "A", name: question.name, ttl, data })) : [],
    }),
    from.port,
    from.address,
  );
});
// An answer's source must be the address to which the question went.
dns.bind(53, RESOLVER, () => say({ is: "up" }));
process.once("disconnect", () => process.exit(0));
