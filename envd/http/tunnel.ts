/** POST /connect?port=N with an upgrade: a raw connection to a server in the sandbox, also on its loopback. */

import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import { AppError } from "../../shared/http/errors.ts";
import { cut } from "../../shared/proxy/sockets/cut.ts";
import { hasFailedWrite, readDespiteFailedWrites } from "../../shared/proxy/sockets/patient.ts";
import { errnoOf } from "../system/errno.ts";

const TUNNEL_PROTOCOL = "svc-tcp";

/** Time limit of a connection inside the sandbox. */
const DIAL_TIMEOUT_MS = 5_000;

/** @throws {AppError} bad_request, nothing_listening */
export async function openTunnel(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<Socket> {
  if (request.headers.upgrade?.toLowerCase() !== TUNNEL_PROTOCOL)
    throw new AppError("bad_request", `only upgrades to ${TUNNEL_PROTOCOL} are possible`);
  const port = Number(new URLSearchParams(request.url?.split("?", 2)[1]).get("port") ?? "");
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new AppError("bad_request", "port must be between 1 and 65535");
  if (port === request.socket.localPort) throw new AppError("bad_request", "this port is envd itself");
  const target = await dial(port, socket);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_PROTOCOL}\r\n\r\n`);
  join(socket, target, head);
  return target;
}

async function dial(port: number, caller: Duplex): Promise<Socket> {
  let last: unknown;
  for (const host of new Set(["127.0.0.1", "::1", ...ownAddresses()])) {
    // The end of a caller that has left does not come again: the connection for it would stay open for ever.
    if (caller.destroyed) break;
    try {
      return await dialOne(host, port, caller);
    } catch (error) {
      last = error;
    }
  }
  throw new AppError("nothing_listening", `nothing answers on port ${port} (${errnoOf(last) ?? "no connection"})`, {
    cause: last,
  });
}

/**
 * Every address of the sandbox. A copy, or a sandbox that was resumed elsewhere, keeps its earlier addresses on the loopback
 * for servers that listen on one of them.
 */
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  // An address of a link cannot be dialled without its interface.
  return all.map(({ address }) => address).filter((address) => !address.startsWith("fe80:"));
}

function dialOne(host: string, port: number, caller: Duplex): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, timeout: DIAL_TIMEOUT_MS });
    const give = (error: Error) => {
      caller.off("close", leave);
      socket.destroy();
      reject(error);
    };
    const leave = () => give(new Error("the caller has left"));
    caller.once("close", leave);
    socket.once("timeout", () => give(new Error("timed out")));
    socket.once("error", give);
    socket.once("connect", () => {
      caller.off("close", leave);
      socket.off("error", give);
      socket.setTimeout(0);
      resolve(readDespiteFailedWrites(socket));
    });
  });
}

// Each direction ends separately; a reset or a lost connection resets the other one, because an end would look complete.
function join(caller: Duplex, target: Socket, head: Buffer): void {
  for (const [from, to] of [
    [caller, target],
    [target, caller],
  ] as const) {
    from.on("error", () => cut(to));
    from.on("end", () => {
      if (hasFailedWrite(from)) cut(to);
    });
    from.on("close", () => {
      if (!from.readableEnded) cut(to);
    });
  }
  if (head.length > 0) target.write(head);
  caller.pipe(target);
  target.pipe(caller);
}
