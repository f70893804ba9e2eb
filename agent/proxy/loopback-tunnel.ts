/** Through envd to a server that listens only on the sandbox's own loopback: an upgrade on envd's internal `/connect`. */

import type { Duplex } from "node:stream";
import { anySignal } from "../../shared/any-signal.ts";
import { dialTcp } from "../../shared/forward/dial.ts";
import { ENVD_PORT, line, NODE_TOKEN_HEADER } from "../../shared/forward/hop-contract.ts";
import { HeadReader } from "../../shared/forward/response-head.ts";
import { ResponseReader } from "../../shared/forward/response-reader.ts";

export interface TunnelTarget {
  readonly address: string;
  readonly controlToken: string;
  /** Inside the sandbox. */
  readonly port: number;
  readonly timeoutMs: number;
}

/** @throws when envd is not there, does not know tunnels, or nothing listens on the port. */
export async function dialLoopback(target: TunnelTarget, caller: AbortSignal): Promise<Duplex> {
  const signal = anySignal(caller, AbortSignal.timeout(target.timeoutMs));
  const socket = await dialTcp({ host: target.address, port: ENVD_PORT, timeoutMs: target.timeoutMs }, signal);
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      settle();
      socket.on("error", () => undefined);
      socket.destroy();
      reject(error);
    };
    const refused = () => fail(new Error("envd did not open the tunnel"));
    const aborted = () => fail(new Error("gave up waiting for the tunnel", { cause: signal.reason }));
    const onData = (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        fail(new Error("envd answered something else than HTTP", { cause: error }));
      }
    };
    const settle = () => {
      signal.removeEventListener("abort", aborted);
      socket.removeListener("data", onData);
      socket.removeListener("error", fail);
      socket.removeListener("close", refused);
      socket.removeListener("end", refused);
    };
    const reader = new ResponseReader(
      "POST",
      {
        onInformational: () => undefined,
        onHead(head) {
          if (head.status === 101) return true;
          refused();
          return false;
        },
        onTakeover(rest) {
          settle();
          socket.pause();
          // Servers that speak first.
          if (rest.length > 0) socket.unshift(rest);
          resolve(socket);
        },
        onData: () => undefined,
        onEnd: () => undefined,
      },
      new HeadReader(),
    );
    signal.addEventListener("abort", aborted);
    socket.on("data", onData);
    socket.on("error", fail);
    socket.on("close", refused);
    socket.on("end", refused);
    socket.write(
      `POST /connect?port=${target.port} HTTP/1.1\r\nHost: envd\r\nConnection: Upgrade\r\nUpgrade: svc-tcp\r\n` +
        `${line(NODE_TOKEN_HEADER, target.controlToken)}Content-Length: 0\r\n\r\n`,
    );
  });
}
