/** Another node as a source of what it has described for this one: its blobs, and the image below an offered disk. */

import { Pool } from "undici";
import { BLOB_ENCODINGS, ENCODINGS_HEADER } from "../../shared/agent-api/blobs/encodings.ts";
import type { Peer } from "../../shared/agent-api/snapshot-shapes.ts";
import { connectorFor } from "../../shared/http/connections/meeting-connector.ts";
import { isPlainToAnother, JOIN } from "../../shared/http/plain-addresses.ts";
import { within } from "../../shared/program/deadline.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import { BlobError, type BlobFault } from "./content/blob-error.ts";
import { isRef } from "./content/refs.ts";
import { type BlobSource, peerSource } from "./sources.ts";
import type { Traffic } from "./traffic.ts";

/** A blob has a few megabytes; a node that sends one as slowly as this counts as away. */
const BLOB_LIMIT_MS = 60_000;
/** The longest blob, a manifest of 64 MiB, with what its seal adds. */
const MOST_BYTES = 65 * 1024 * 1024;

export interface OpenPeer {
  readonly source: BlobSource;
  /** How far the other node has described the image below the offered disk. @throws {BlobError} */
  readonly image: (signal: AbortSignal) => Promise<{ readonly ref: string | undefined }>;
  close(): Promise<void>;
}

/**
 * @param meeting how the other node is met; undefined: this node has no certificate
 * @throws {BlobError} denied, for an address of another machine without TLS
 */
export function openPeer(
  { nodeId, url, ticket }: Peer,
  meeting: Meeting | undefined,
  traffic?: Pick<Traffic, "add">,
): OpenPeer {
  if (isPlainToAnother(url))
    throw new BlobError("denied", `node ${nodeId} is at ${url}, where its data would come in clear: ${JOIN}`);
  if (meeting === undefined && url.startsWith("https:"))
    throw new BlobError("denied", `node ${nodeId} is at ${url}, and this node has no certificate to meet it: ${JOIN}`);
  const pool = new Pool(url, meeting === undefined ? {} : { connect: connectorFor(meeting) });
  const name = `node ${nodeId}`;

  const get = async (path: string, signal: AbortSignal): Promise<Buffer | undefined> => {
    let status: number;
    let bytes: Buffer;
    try {
      [status, bytes] = await within(BLOB_LIMIT_MS, async (limit) => {
        const { statusCode, body } = await pool.request({
          method: "GET",
          path,
          headers: { authorization: `Bearer ${ticket}`, [ENCODINGS_HEADER]: BLOB_ENCODINGS },
          signal: AbortSignal.any([signal, limit]),
        });
        return [statusCode, await limited(body)] as const;
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new BlobError("unreachable", `${name} did not answer at ${url}`, { cause });
    }
    if (status === 200) {
      traffic?.add("from_nodes", bytes.length);
      return bytes;
    }
    if (status === 404) return undefined;
    throw new BlobError(FAULTS[status] ?? "unreachable", `${name} answered ${status}: ${wordsOf(bytes)}`);
  };

  return {
    source: peerSource(nodeId, (ref, signal) => get(`/v1/peer/blobs/${ref}`, signal)),
    async image(signal) {
      const answer = await get("/v1/peer/image", signal);
      if (answer === undefined) throw new BlobError("missing", `${name} does not offer the image`);
      const ref = readRef(answer);
      if (ref !== undefined && !isRef(ref)) throw new BlobError("damaged", `${name} named no reference of the image`);
      return { ref };
    },
    close: () => pool.destroy(),
  };
}

const FAULTS: Readonly<Record<number, BlobFault>> = { 401: "denied", 403: "denied", 409: "changed", 507: "full" };

async function limited(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MOST_BYTES) throw new Error(`the answer is longer than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function readRef(bytes: Buffer): string | undefined {
  const value = parsed(bytes);
  return typeof value === "object" && value !== null && "ref" in value && typeof value.ref === "string"
    ? value.ref
    : undefined;
}

function wordsOf(bytes: Buffer): string {
  const value = parsed(bytes);
  const words = typeof value === "object" && value !== null && "message" in value ? value.message : undefined;
  return typeof words === "string" ? words.slice(0, 500) : "no reason";
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}
