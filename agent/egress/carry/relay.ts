/** Copies bytes both ways between two sockets, with at most one buffer in memory. Each direction ends separately. */

import type { Socket } from "node:net";
import { hasFailedWrite } from "../../../shared/proxy/sockets/patient.ts";
import type { Bytes, Carried } from "./carried.ts";
import { intakeOf } from "./intake.ts";

/**
 * Both sockets have `allowHalfOpen`: the end of one direction is not the end of the other (gpg's key servers).
 * @param first bytes that were read from the sandbox already
 */
export function relay(client: Socket, upstream: Socket, first: Buffer): Carried {
  // An error of one side is an error for the other: an end would look like a complete answer.
  client.on("error", () => upstream.resetAndDestroy());
  upstream.on("error", () => client.resetAndDestroy());
  // The kernel reports a reset once, and a write may have met it: the end behind it is not one.
  upstream.once("end", () => {
    if (hasFailedWrite(upstream)) client.resetAndDestroy();
  });
  // A socket that closes after its end was read is done, and the other one still sends what it has. Else both are cut.
  client.once("close", () => {
    if (!client.readableEnded) upstream.resetAndDestroy();
  });
  upstream.once("close", () => {
    if (!upstream.readableEnded) client.resetAndDestroy();
  });
  if (first.length > 0) upstream.write(first);
  client.pipe(upstream);
  pour(upstream, client);
  return {
    closed: closed(client, upstream),
    destroy() {
      for (const socket of [client, upstream]) if (!socket.destroyed) socket.resetAndDestroy();
    },
  };
}

function pour(upstream: Socket, client: Socket): void {
  const intake = intakeOf(upstream);
  if (intake === undefined) return void upstream.pipe(client);
  upstream.once("end", () => client.end());
  // First the bytes that came together with a proxy's answer.
  for (let early = upstream.read(); early !== null; early = upstream.read()) client.write(early as Buffer);
  intake.lend(client);
}

async function closed(client: Socket, upstream: Socket): Promise<Bytes> {
  await Promise.all([whenClosed(client), whenClosed(upstream)]);
  return { sent: client.bytesRead, received: client.bytesWritten };
}

function whenClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}
