/** A SOCKS5 server (RFC 1928, 1929), with or without a password, that remembers its requests and can be killed. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { Names } from "./names.ts";
import { SOCKS_PORT, SOCKS_USER } from "./plan.ts";
import type { Records } from "./records.ts";

const REPLY = { ok: 0, refused: 5, unsupported: 7 } as const;

export interface SocksServer {
  /** Closes the port and cuts every connection, as if the program were killed. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

interface Given {
  readonly address: string;
  readonly withPassword: boolean;
  readonly names: Names;
  readonly records: Records;
}

export function socksServer(given: Given): SocksServer {
  const open = new Set<Socket>();
  let server: Server | undefined;
  return {
    async kill() {
      const closing = server;
      server = undefined;
      for (const socket of open) socket.resetAndDestroy();
      await new Promise<void>((resolve) => {
        if (closing === undefined) resolve();
        else closing.close(() => resolve());
      });
    },
    async start() {
      if (server !== undefined) return;
      const started = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        open.add(socket);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => open.delete(socket));
        serve(socket, given).catch(() => socket.destroy());
      });
      server = started;
      await new Promise<void>((resolve) => {
        started.listen(SOCKS_PORT, given.address, 4096, resolve);
      });
    },
  };
}

async function serve(socket: Socket, { address: server, withPassword, names, records }: Given): Promise<void> {
  const read = reader(socket);
  const [, count = 0] = await read(2);
  const methods = await read(count);
  const wanted = withPassword ? 2 : 0;
  if (!methods.includes(wanted)) {
    socket.end(Buffer.from([5, 0xff]));
    return;
  }
  socket.write(Buffer.from([5, wanted]));
  const username = withPassword ? await authenticate(socket, read) : undefined;
  if (withPassword && username === undefined) return;
  const [, command = 0, , kind = 0] = await read(4);
  const host = await readHost(kind, read);
  const port = (await read(2)).readUInt16BE(0);
  const atyp = kind === 1 ? "ipv4" : kind === 3 ? "domain" : "ipv6";
  const asked = { is: "socks", server, atyp, host, port, ...(username === undefined ? {} : { username }) } as const;
  const end = (reply: number) => {
    records.add({ ...asked, reply });
    socket.end(replyOf(reply));
  };
  if (command !== 1) return end(REPLY.unsupported);
  const address = kind === 3 ? names.addresses(host)[0] : host;
  if (address === undefined || kind === 4) return end(REPLY.refused);
  const upstream = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  upstream.on("error", () => (upstream.connecting ? end(REPLY.refused) : socket.destroy()));
  socket.on("close", () => upstream.destroy());
  upstream.on("connect", () => {
    records.add({ ...asked, reply: REPLY.ok });
    socket.write(replyOf(REPLY.ok));
    read.release();
    socket.pipe(upstream).pipe(socket);
  });
}

async function authenticate(socket: Socket, read: Reader): Promise<string | undefined> {
  const [, length = 0] = await read(2);
  const username = (await read(length)).toString("utf8");
  const [passwordLength = 0] = await read(1);
  const password = (await read(passwordLength)).toString("utf8");
  const right = username === SOCKS_USER.username && password === SOCKS_USER.password;
  if (right) socket.write(Buffer.from([1, 0]));
  else socket.end(Buffer.from([1, 1]));
  return right ? username : undefined;
}

async function readHost(kind: number, read: Reader): Promise<string> {
  if (kind === 1) return [...(await read(4))].join(".");
  if (kind === 3) return (await read((await read(1))[0] ?? 0)).toString("latin1");
  return (await read(16)).toString("hex");
}

function replyOf(reply: number): Buffer {
  return Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
}

interface Reader {
  (length: number): Promise<Buffer>;
  /** Puts surplus bytes back; from now on another part reads the socket. */
  release(): void;
}

function reader(socket: Socket): Reader {
  let pending = Buffer.alloc(0);
  let waiting: (() => void) | undefined;
  const onData = (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    waiting?.();
  };
  socket.on("data", onData);
  const read = async (length: number) => {
    while (pending.length < length) {
      await new Promise<void>((resolve, reject) => {
        waiting = resolve;
        socket.once("close", () => reject(new Error("closed")));
      });
    }
    const taken = pending.subarray(0, length);
    pending = pending.subarray(length);
    return taken;
  };
  const release = () => {
    socket.off("data", onData);
    if (pending.length > 0) socket.unshift(pending);
  };
  return Object.assign(read, { release });
}
