/** Peers that send without end to one that does not read: the bytes of each flood, and how many the peer takes. */

import type { Socket } from "node:net";

/** More than any program may hold, and more than the sockets between can hold. */
const MOST_BYTES = 96 * 1024 * 1024;
/** When no byte has moved for this long, every buffer on the way is full. */
const STALLED_MS = 700;
const PIECE_BYTES = 64 * 1024;

export interface Flood {
  readonly name: string;
  /** The bytes that come first. */
  readonly begin: string;
  /** The bytes that are repeated. */
  readonly again: string;
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";

/** Floods of a server whose client does not read. */
export const ANSWERS: readonly Flood[] = [
  { name: "early hints", begin: "", again: `HTTP/1.1 103 Early Hints\r\nLink: </${"a".repeat(1000)}>\r\n\r\n` },
  { name: "processing", begin: "", again: "HTTP/1.1 102 Processing\r\n\r\n" },
  { name: "continue", begin: "", again: "HTTP/1.1 100 Continue\r\n\r\n" },
  { name: "unknown informational answers", begin: "", again: `HTTP/1.1 150 X\r\nX: ${"a".repeat(1000)}\r\n\r\n` },
  { name: "a status line", begin: "HTTP/1.1 200 ", again: "a" },
  { name: "headers", begin: OK, again: `X-A: ${"a".repeat(100)}\r\n` },
  { name: "one header", begin: `${OK}X-A: `, again: "a" },
  { name: "a body with a length", begin: `${OK}Content-Length: 999999999999\r\n\r\n`, again: "a" },
  { name: "a body to the end", begin: "HTTP/1.0 200 OK\r\n\r\n", again: "a" },
  { name: "chunks", begin: CHUNKED, again: `1000\r\n${"a".repeat(4096)}\r\n` },
  { name: "chunks of one byte", begin: CHUNKED, again: "1\r\na\r\n" },
  { name: "a chunk extension", begin: `${CHUNKED}1;a=`, again: "a" },
  { name: "chunk extensions", begin: CHUNKED, again: `1;a=${"b".repeat(100)}\r\na\r\n` },
  { name: "digits of a chunk size", begin: CHUNKED, again: "0" },
  { name: "trailers", begin: `${CHUNKED}1\r\na\r\n0\r\n`, again: `X-A: ${"a".repeat(100)}\r\n` },
  { name: "one trailer", begin: `${CHUNKED}1\r\na\r\n0\r\nX-A: `, again: "a" },
  { name: "answers to nothing", begin: "", again: `${OK}Content-Length: 1\r\n\r\na` },
  { name: "no HTTP", begin: "SSH-2.0-x\r\n", again: "a" },
];

/** Floods of a server that was asked to switch protocols. */
export const SWITCHES: readonly Flood[] = [
  { name: "data after a switch", begin: SWITCHED, again: "a" },
  { name: "a body instead of a switch", begin: `${OK}Content-Length: 999999999999\r\n\r\n`, again: "a" },
  { name: "chunks instead of a switch", begin: CHUNKED, again: `1000\r\n${"a".repeat(4096)}\r\n` },
  { name: "early hints before a switch", begin: "", again: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" },
];

/** Floods of a client whose server does not read. `{R}` stands for the headers that every request has. */
export const REQUESTS: readonly Flood[] = [
  { name: "a request's body", begin: "POST / HTTP/1.1\r\n{R}Content-Length: 999999999999\r\n\r\n", again: "a" },
  {
    name: "a request's chunks",
    begin: "POST / HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n",
    again: `1000\r\n${"a".repeat(4096)}\r\n`,
  },
  {
    name: "a request's chunk extension",
    begin: "POST / HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n1;a=",
    again: "a",
  },
  {
    name: "a request's trailers",
    begin: "POST / HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
    again: `X-A: ${"a".repeat(100)}\r\n`,
  },
  { name: "a request's headers", begin: "GET / HTTP/1.1\r\n{R}", again: `X-A: ${"a".repeat(100)}\r\n` },
  { name: "requests ahead of their turn", begin: "", again: "GET / HTTP/1.1\r\n{R}\r\n" },
  {
    name: "data behind a request to switch",
    begin: "GET / HTTP/1.1\r\n{R}Connection: Upgrade\r\nUpgrade: raw\r\n\r\n",
    again: "a",
  },
];

/**
 * Sends until the peer closes the connection, takes nothing more, or has taken more than it may hold.
 * @returns the number of bytes handed to the system
 */
export async function flood(socket: Socket, { begin, again }: Pick<Flood, "begin" | "again">): Promise<number> {
  const piece = Buffer.from(again.repeat(Math.ceil(PIECE_BYTES / again.length)), "latin1");
  socket.write(begin, "latin1");
  while (!socket.destroyed && socket.bytesWritten < MOST_BYTES) {
    if (!socket.write(piece) && !(await drained(socket))) break;
  }
  return socket.bytesWritten;
}

function drained(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (more: boolean) => {
      clearTimeout(timer);
      socket.removeListener("drain", onDrain);
      socket.removeListener("close", onClose);
      resolve(more);
    };
    const onDrain = () => settle(true);
    const onClose = () => settle(false);
    const timer = setTimeout(() => settle(false), STALLED_MS);
    socket.once("drain", onDrain);
    socket.once("close", onClose);
  });
}
