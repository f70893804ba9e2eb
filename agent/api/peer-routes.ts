/** The routes of the agent's API that other nodes call: they read what this node offers, each with the ticket of one offer. */

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ENCODINGS_HEADER, readsZstd } from "../../shared/agent-api/blobs/encodings.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isLoopback } from "../../shared/http/plain-addresses.ts";
import { nodeOfName } from "../../shared/tls/names.ts";
import { nameOf } from "../../shared/tls/peers.ts";
import { BlobError } from "../blobs/content/blob-error.ts";
import type { Packing } from "../blobs/content/packing.ts";
import { isRef } from "../blobs/content/refs.ts";
import type { Peering } from "../joining/peering.ts";
import type { Offers } from "../snapshots/beyond/offers.ts";
import { bearer } from "./server.ts";

export interface PeerRoutesDeps {
  readonly offers: Pick<Offers, "read" | "imageOf">;
  readonly peering: Pick<Peering, "apiDoor">;
}

export function addPeerRoutes(server: FastifyInstance, { offers, peering }: PeerRoutesDeps): void {
  const ticketOf = (request: FastifyRequest): string => {
    if (peering.apiDoor !== undefined && nodeOfName(nameOf(request.raw.socket as TLSSocket)) === undefined)
      throw new AppError("forbidden", "the connection has no certificate of a node of this platform");
    return bearer(request);
  };

  server.get("/v1/peer/blobs/:ref", async (request, reply) => {
    const ticket = ticketOf(request);
    const { ref } = request.params as { readonly ref: string };
    if (!isRef(ref)) throw new AppError("bad_request", "the path names no reference of a blob");
    const left = new AbortController();
    reply.raw.once("close", () => left.abort(new AppError("unavailable", "the other node has left")));
    const packing = packingFor(request.raw.socket, readsZstd(request.headers[ENCODINGS_HEADER]));
    const stored = await offers.read(ticket, ref, left.signal, packing).catch((error: unknown) => {
      if (!(error instanceof BlobError)) throw error;
      throw new AppError(error.fault === "changed" ? "conflict" : "unavailable", error.message, { cause: error });
    });
    if (stored === undefined) throw new AppError("not_found", `the offer does not have the blob ${ref}`);
    return reply
      .type("application/octet-stream")
      .send(Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength));
  });
  server.get("/v1/peer/image", (request) => offers.imageOf(ticketOf(request)));
}

/** Compression takes more processor time than all the rest of a transfer, and gains nothing where the reader is on this machine. */
function packingFor(
  { remoteAddress = "", localAddress }: Pick<Socket, "remoteAddress" | "localAddress">,
  zstd: boolean,
): Packing {
  if (isLoopback(remoteAddress) || remoteAddress === localAddress) return "fast";
  return zstd ? "zstd" : "deflate";
}
