/** Reads request bodies: a small JSON document as a whole, or bytes in any supported encoding. */

import type { IncomingMessage } from "node:http";
import { AppError } from "../../shared/http/errors.ts";
import { lateZlib } from "../runtime/late-builtins.ts";
import { arriving, type Pieces } from "./arriving.ts";

/** An empty body is an empty object. @throws {AppError} payload_too_large, bad_request when it is not a JSON object */
export async function readJson(request: IncomingMessage, limitBytes: number): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const pieces of arriving(request)) {
    for (const piece of pieces) size += piece.length;
    if (size > limitBytes) throw new AppError("payload_too_large", `the body is larger than ${limitBytes} bytes`);
    chunks.push(...pieces);
  }
  if (size === 0) return {};
  let value: unknown;
  try {
    // Bytes that are not UTF-8 would become other text, and a path another one.
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)));
  } catch (error) {
    throw new AppError("bad_request", "the body is not JSON", { cause: error });
  }
  if (!isObject(value)) throw new AppError("bad_request", "the body is not a JSON object");
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The body's bytes with `Content-Encoding` undone. @throws {AppError} bad_request for an unknown encoding */
export function decodedBody(request: IncomingMessage): AsyncIterable<Pieces> {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return arriving(request);
  if (encoding === "gzip" || encoding === "x-gzip") return gunzipped(request);
  const name = encoding.slice(0, 40);
  throw new AppError("bad_request", `unsupported content encoding '${name}', supported: [identity, gzip]`);
}

async function* gunzipped(request: IncomingMessage): AsyncGenerator<Pieces> {
  const gunzip = lateZlib().createGunzip({ chunkSize: 64 * 1024 });
  const cutOff = () => {
    if (!request.readableEnded) gunzip.destroy(new AppError("bad_request", "the body ended too early"));
  };
  request.on("error", cutOff);
  request.on("close", cutOff);
  request.pipe(gunzip);
  try {
    yield* arriving(gunzip);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("bad_request", "the body is not valid gzip", { cause: error });
  } finally {
    request.off("error", cutOff);
    request.off("close", cutOff);
    request.unpipe(gunzip);
    gunzip.destroy();
  }
}
