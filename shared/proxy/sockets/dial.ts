/** Opens connections: TCP, and TLS over an open one. Every wait has a limit and ends with its signal. */

import net from "node:net";
import tls from "node:tls";
import { AnswerFault, handshakeFault } from "../answer-fault.ts";
import { readDespiteFailedWrites } from "./patient.ts";

const KEEP_ALIVE_PROBE_MS = 60_000;

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
}

/** @throws the socket's own error (`ECONNREFUSED`, `ETIMEDOUT`, …) or the signal's reason. */
export function dialTcp({ host, port, timeoutMs }: TcpTarget, signal: AbortSignal): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    // Half-open: an upgraded connection ends each direction on its own.
    const socket = net.connect({ host, port, noDelay: true, allowHalfOpen: true });
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    const timer = setTimeout(() => fail(Object.assign(new Error("dial timed out"), { code: "ETIMEDOUT" })), timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.removeListener("error", fail);
      socket.removeListener("connect", done);
    };
    const done = () => {
      settle();
      resolve(readDespiteFailedWrites(socket));
    };
    const fail = (error: unknown) => {
      settle();
      // A late error of an abandoned socket must not end the process.
      socket.on("error", () => undefined);
      socket.destroy();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const abort = () => fail(signal.reason);
    socket.once("error", fail);
    socket.once("connect", done);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
  });
}

/**
 * TLS towards a server in a sandbox. The certificate is not verified: the platform assigned the address, and nothing is
 * between. `serverName` is sent as SNI when it is a name.
 * @throws {AnswerFault} when the server, which has accepted the connection, does not begin TLS; or the signal's reason
 */
export async function secure(
  socket: net.Socket,
  serverName: string | undefined,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<net.Socket> {
  const named = serverName !== undefined && serverName !== "" && net.isIP(serverName) === 0;
  const options = { rejectUnauthorized: false, ...(named ? { servername: serverName } : {}) };
  try {
    return await secureWith(socket, options, timeoutMs, signal);
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new AnswerFault(handshakeFault(cause), { cause });
  }
}

/** TLS towards a machine of the platform. @param options say how its certificate is verified */
export function secureWith(
  socket: net.Socket,
  options: tls.ConnectionOptions,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const wrapped = tls.connect({ ...options, socket, ALPNProtocols: ["http/1.1"] });
    const timer = setTimeout(() => fail(new Error("TLS handshake timed out")), timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      wrapped.removeListener("error", fail);
      wrapped.removeListener("secureConnect", done);
      wrapped.removeListener("close", closed);
    };
    const done = () => {
      settle();
      resolve(readDespiteFailedWrites(wrapped));
    };
    const fail = (error: unknown) => {
      settle();
      wrapped.on("error", () => undefined);
      wrapped.destroy();
      socket.destroy();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const abort = () => fail(signal.reason);
    const closed = () => fail(new Error("closed during the TLS handshake"));
    wrapped.once("error", fail);
    wrapped.once("secureConnect", done);
    wrapped.once("close", closed);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
  });
}
