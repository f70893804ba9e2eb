/** A small HTTP load generator on raw sockets, because it must cost less than the server that it measures. */

import { connect, type Socket } from "node:net";

export interface LoadTarget {
  readonly host: string;
  readonly port: number;
  /** The whole request as it goes on the wire, with keep-alive. */
  readonly request: string;
}

export interface LoadResult {
  readonly perSecond: number;
  /** The milliseconds that each answer took. */
  readonly latencies: readonly number[];
}

/** Sends requests through `connections` sockets for `ms`, one at a time on each socket. Any answer but 200 throws. */
export async function load(target: LoadTarget, connections: number, ms: number): Promise<LoadResult> {
  const latencies: number[] = [];
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(target)));
  const started = performance.now();
  try {
    await Promise.all(sockets.map((socket) => exchange(socket, target.request, started + ms, latencies)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  const seconds = (performance.now() - started) / 1000;
  return { perSecond: latencies.length / seconds, latencies };
}

function open({ host, port }: LoadTarget): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

function exchange(socket: Socket, request: string, until: number, latencies: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let heard = "";
    let sent = performance.now();
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the connection was closed under load")));
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
      if (!isComplete(heard)) return;
      if (!heard.startsWith("HTTP/1.1 200")) return reject(new Error(`answered ${heard.slice(0, 200)}`));
      const now = performance.now();
      latencies.push(now - sent);
      heard = "";
      if (now >= until) return resolve();
      sent = now;
      socket.write(request);
    });
    socket.write(request);
  });
}

// The backend's answers are small and have a Content-Length; head and body mostly come in one piece.
function isComplete(heard: string): boolean {
  const head = heard.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(heard.slice(0, head + 2))?.[1] ?? Number.NaN);
  if (Number.isNaN(length)) throw new Error(`an answer without a length: ${heard.slice(0, head)}`);
  return heard.length >= head + 4 + length;
}
