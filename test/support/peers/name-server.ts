/** A name server over UDP and TCP on one port; the test decides its answers. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { listening } from "./listening.ts";

export interface NameServer {
  readonly host: string;
  readonly port: number;
  close(): void;
}

/** Tries other ports when a port that is free in UDP is taken in TCP, or the other way round. */
export async function onFreePort<T>(open: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await open();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || attempt === 20) throw error;
    }
  }
}

/** @param reply returns undefined to give no answer */
export function nameServer(reply: (query: Buffer) => Buffer | undefined): Promise<NameServer> {
  return onFreePort(async () => {
    const udp = createSocket("udp4");
    udp.on("message", (query, from) => {
      const message = reply(query);
      if (message !== undefined) udp.send(message, from.port, from.address);
    });
    udp.bind(0, "127.0.0.1");
    await once(udp, "listening");
    const { port } = udp.address();
    const tcp = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (chunk: Buffer) => {
        const message = reply(chunk.subarray(2));
        if (message === undefined) return;
        const size = Buffer.alloc(2);
        size.writeUInt16BE(message.length);
        socket.write(Buffer.concat([size, message]));
      });
    });
    const close = () => {
      udp.close();
      tcp.close();
    };
    try {
      await listening(tcp, "127.0.0.1", port);
    } catch (error) {
      close();
      throw error;
    }
    return { host: "127.0.0.1", port, close };
  });
}
