/** Clients of envd over gRPC-Web, in its four forms: binary and text, messages in protobuf and in JSON. */

import type { Interceptor, Transport } from "@connectrpc/connect";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-grpc-web";
import { createNodeHttpClient } from "@connectrpc/connect-node";

export const GRPC_WEB_FORMS = [
  "application/grpc-web+proto",
  "application/grpc-web+json",
  "application/grpc-web-text+proto",
  "application/grpc-web-text+json",
] as const;

export type GrpcWebForm = (typeof GRPC_WEB_FORMS)[number];

/** @param headers of every call: the token, the user, where the edge is to lead it */
export function grpcWebTransport(
  baseUrl: string,
  form: GrpcWebForm,
  headers: Readonly<Record<string, string>> = {},
): Transport {
  const http = createNodeHttpClient({ httpVersion: "1.1" });
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) if (!request.header.has(name)) request.header.set(name, value);
    return next(request);
  };
  return createTransport({
    baseUrl,
    httpClient: form.includes("-text") ? asText(http, form) : http,
    useBinaryFormat: form.endsWith("+proto"),
    interceptors: [withHeaders],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes: 0xffffffff,
    writeMaxBytes: 0xffffffff,
  });
}

/** The library's client speaks the binary form; text is put around it. */
function asText(http: UniversalClientFn, form: GrpcWebForm): UniversalClientFn {
  return async (request) => {
    request.header.set("content-type", form);
    const body = request.body === undefined ? {} : { body: inPieces(request.body) };
    const response = await http({ ...request, ...body });
    const type = response.header.get("content-type") ?? "";
    if (!type.startsWith("application/grpc-web-text")) return response;
    response.header.set("content-type", type.replace("-text", ""));
    return { ...response, body: fromBase64(response.body) };
  };
}

/** Padded in the middle and cut within groups, as a client may send it that flushes early. */
async function* inPieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    for (const half of [chunk.subarray(0, 4), chunk.subarray(4)]) {
      const text = Buffer.from(half).toString("base64");
      yield Buffer.from(text.slice(0, 3));
      yield Buffer.from(text.slice(3));
    }
  }
}

async function* fromBase64(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let text = "";
  for await (const chunk of body) {
    text += Buffer.from(chunk).toString("latin1");
    const whole = text.length - (text.length % 4);
    yield bytesOfText(text.slice(0, whole));
    text = text.slice(whole);
  }
  if (text !== "") throw new Error(`the answer ends within a group of base64: ${text}`);
}

/** The bytes of pieces of base64, each with its padding. */
export function bytesOfText(text: string): Buffer {
  return Buffer.concat((text.match(/[^=]+=*/g) ?? []).map((piece) => Buffer.from(piece, "base64")));
}
