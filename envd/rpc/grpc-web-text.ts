/** Pure: the text form of gRPC-Web. The messages are those of the binary form, in base64, for clients that read text only. */

import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";

type Request = Parameters<UniversalHandler>[0];

const GRPC_WEB = /^application\/grpc-web/i;
const TEXT = /^application\/grpc-web-text(?![\w-])/i;
const ACCEPTS_TEXT = /application\/grpc-web-text(?![\w-])/i;
const ACCEPTS_BINARY = /application\/grpc-web(?![\w-])/i;
/** Characters that stand for three bytes. */
const GROUP = 4;
/** Base64 whose padding, where it has some, ends it. */
const SEGMENTS = /[A-Za-z0-9+/]+={0,2}/g;

/** Serves the text form by the handler of the binary one. A client may send one form and accept the other. */
export function inTextForm(handler: UniversalHandler): (request: Request) => Promise<UniversalServerResponse> {
  return async (request) => {
    const type = request.header.get("content-type") ?? "";
    if (!GRPC_WEB.test(type)) return handler(request);
    const sendsText = TEXT.test(type);
    const wantsText = answersInText(sendsText, request.header.get("accept") ?? "");
    if (sendsText) request.header.set("content-type", type.replace(TEXT, "application/grpc-web"));
    const { body } = request;
    const answer = await handler(sendsText && isByteStream(body) ? { ...request, body: decoded(body) } : request);
    if (!wantsText || answer.body === undefined) return answer;
    const header = new Headers(answer.header);
    header.set("content-type", (header.get("content-type") ?? "").replace(GRPC_WEB, "application/grpc-web-text"));
    return { ...answer, header, body: encoded(answer.body) };
  };
}

function answersInText(sendsText: boolean, accept: string): boolean {
  if (ACCEPTS_TEXT.test(accept)) return true;
  return sendsText && !ACCEPTS_BINARY.test(accept);
}

function isByteStream(body: Request["body"]): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

/** @throws {ConnectError} invalid_argument where the text is not base64 */
async function* decoded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest = "";
  for await (const chunk of body) {
    const text = rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString("latin1");
    const whole = text.length - (text.length % GROUP);
    rest = text.slice(whole);
    if (whole > 0) yield bytesOf(text.slice(0, whole));
  }
  if (rest !== "") throw notBase64();
}

// A client may pad at every flush, so that padding is found anywhere.
function bytesOf(text: string): Buffer {
  const segments = text.match(SEGMENTS) ?? [];
  let length = 0;
  for (const segment of segments) {
    length += segment.length;
    if (segment.length % GROUP !== 0) throw notBase64();
  }
  if (length !== text.length) throw notBase64();
  return Buffer.concat(segments.map((segment) => Buffer.from(segment, "base64")));
}

function notBase64(): ConnectError {
  return new ConnectError("the body is not base64, which its content type promises", Code.InvalidArgument);
}

/** Pads each piece, so that a client can read it before the next one comes. */
async function* encoded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of body)
    yield Buffer.from(Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString("base64"), "latin1");
}
