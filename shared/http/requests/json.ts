/** Bodies in JSON: reads them, and says in words why one cannot be read. */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../errors.ts";

const JSON_TYPE = "application/json";

/** Lets the server read bodies in JSON, with or without a Content-Length, and refuse all others. An empty body is none. */
export function readJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(JSON_TYPE, { parseAs: "buffer" }, (request, bytes, done) => {
    try {
      done(null, bodyIn(bytes as Buffer, request.headers["content-encoding"]));
    } catch (error) {
      done(error as Error);
    }
  });
  server.addContentTypeParser("*", { parseAs: "buffer" }, (request, bytes, done) => {
    if (bytes.length === 0) done(null, undefined);
    else done(new AppError("bad_request", wrongType(request)));
  });
}

/** What fastify says about a body names neither the limit nor the type: an error that does. Others come back as they are. */
export function bodyError(reason: unknown, request: FastifyRequest): unknown {
  if (!(reason instanceof Error) || !("code" in reason)) return reason;
  if (reason.code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const message = `the body is larger than ${request.routeOptions.bodyLimit} bytes, the most that this route takes`;
    return new AppError("payload_too_large", message, { cause: reason });
  }
  if (reason.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new AppError("unsupported_media_type", wrongType(request), { cause: reason });
  return reason;
}

/**
 * The value that a body holds; undefined: the body is empty. Some clients name an encoding, such as utf-8, that they have not
 * applied: what can be read as it is, is read.
 * @throws {AppError} bad_request; unsupported_media_type for a compressed body
 */
export function bodyIn(bytes: Buffer, encoding = ""): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return valueIn(decoded(bytes));
  } catch (error) {
    if (["", "identity"].includes(encoding.trim().toLowerCase())) throw error;
    const message = `Content-Encoding ${shortened(encoding)} is not taken: send the body as it is`;
    throw new AppError("unsupported_media_type", message);
  }
}

function valueIn(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError("bad_request", `body is not valid JSON: ${reasonOf(error as SyntaxError, text)}`);
  }
}

/** Without the byte order mark that editors and shells of Windows write before a text. */
function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const [first, second] = bytes;
    const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
    const found = isUtf16 ? "it is UTF-16" : "other bytes would be stored as another text";
    throw new AppError("bad_request", `body is not UTF-8: ${found}; write it as UTF-8`);
  }
}

/** The parser's reason without the part of the body that it quotes. */
function reasonOf({ message }: SyntaxError, text: string): string {
  const reason = message.split(/, (?:\.\.\.)?"/u, 1)[0] ?? message;
  const isQuoted = text.startsWith("'");
  return isQuoted ? `${reason}; the shell has passed on the quotes around it, so send it from a file` : reason;
}

function wrongType({ headers }: FastifyRequest): string {
  const given = headers["content-type"] ?? "";
  const found = given === "" ? "and the request names none" : `not '${shortened(given)}'`;
  return `Content-Type must be ${JSON_TYPE}, ${found}`;
}

function shortened(value: string): string {
  return value.length > 100 ? `${value.slice(0, 100)}…` : value;
}
