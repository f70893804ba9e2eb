/** Dials a server that listens only on the sandbox's loopback, through an upgrade of envd's internal `/connect`. */

import { request } from "node:http";
import type { Socket } from "node:net";
import { within } from "../../shared/program/deadline.ts";
import { ENVD_PORT, field, NODE_TOKEN_HEADER } from "../../shared/proxy/hop-contract.ts";
import { dialTcp } from "../../shared/proxy/sockets/dial.ts";

const HEADERS = ["Host", "envd", "Connection", "Upgrade", "Upgrade", "svc-tcp", "Content-Length", "0"] as const;

export interface TunnelTarget {
  readonly address: string;
  readonly controlToken: string;
  /** Port inside the sandbox. */
  readonly port: number;
  readonly timeoutMs: number;
}

/** @throws when envd is not there, does not know tunnels, or nothing listens on the port. */
export function dialLoopback(target: TunnelTarget, caller: AbortSignal): Promise<Socket> {
  return within(target.timeoutMs, (limit) => dialUntil(AbortSignal.any([caller, limit]), target));
}

async function dialUntil(signal: AbortSignal, target: TunnelTarget): Promise<Socket> {
  const socket = await dialTcp({ host: target.address, port: ENVD_PORT, timeoutMs: target.timeoutMs }, signal);
  return new Promise((resolve, reject) => {
    const call = request({
      createConnection: () => socket,
      method: "POST",
      path: `/connect?port=${target.port}`,
      headers: [...HEADERS, ...field(NODE_TOKEN_HEADER, target.controlToken)],
    });
    const giveUp = () => call.destroy(new Error("gave up waiting for the tunnel", { cause: signal.reason }));
    signal.addEventListener("abort", giveUp);
    call.once("close", () => signal.removeEventListener("abort", giveUp));
    call.once("upgrade", (_answer, tunnel: Socket, rest) => {
      // A server that speaks first has sent these bytes.
      if (rest.length > 0) tunnel.unshift(rest);
      resolve(tunnel);
    });
    call.once("response", () => call.destroy(new Error("envd did not open the tunnel")));
    call.on("error", (cause) => reject(new Error("envd did not open the tunnel", { cause })));
    call.end();
  });
}
