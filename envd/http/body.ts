/** Request bodies: a small JSON document read whole, or bytes in whatever encoding they come. */

import type { IncomingMessage } from "node:http";
import { AppError } from "../../shared/errors.ts";
import { lateZlib } from "../late-builtins.ts";

/** An empty body is an empty object. @throws {AppError} payload_too_large, bad_request when it is not a JSON object */
export async function readJson(request: IncomingMessage, limitBytes: number): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes) throw new AppError("payload_too_large", `the body is larger than ${limitBytes} bytes`);
    chunks.push(chunk);
  }
  if (size === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (error) {
    throw new AppError("bad_request", "the body is not JSON", { cause: error });
  }
  if (!isObject(value)) throw new AppError("bad_request", "the body is not a JSON object");
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The body's bytes with `Content-Encoding` undone. @throws {AppError} bad_request for an encoding we do not know */
export function decodedBody(request: IncomingMessage): AsyncIterable<Buffer> {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  // A reader that gives up must not cut the connection: the caller is still to be told why.
  if (encoding === "identity" || encoding === "") return request.iterator({ destroyOnReturn: false });
  if (encoding !== "gzip" && encoding !== "x-gzip")
    throw new AppError(
      "bad_request",
      `unsupported content encoding '${encoding.slice(0, 40)}', supported: [identity, gzip]`,
    );
  return gunzipped(request);
}

async function* gunzipped(request: IncomingMessage): AsyncGenerator<Buffer> {
  const gunzip = lateZlib().createGunzip({ chunkSize: 64 * 1024 });
  request.on("error", (error) => gunzip.destroy(error));
  request.on("aborted", () => gunzip.destroy(new AppError("bad_request", "the body ended too early")));
  request.pipe(gunzip);
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("bad_request", "the body is not valid gzip", { cause: error });
  } finally {
    request.unpipe(gunzip);
    gunzip.destroy();
  }
}
