/** Calls to a sandbox's envd. What the edge answers in its place is an error with the edge's own sentence, and not with a status alone. */

import { ConnectError, type Transport } from "@connectrpc/connect";
import type { UniversalClientFn, UniversalClientResponse } from "@connectrpc/connect/protocol";
import { codeFromHttpStatus, createTransport } from "@connectrpc/connect/protocol-connect";
import { createNodeHttpClient } from "@connectrpc/connect-node";

/** envd sends at most 32 KiB of output in a message; a long list of a folder takes more. */
const LARGEST_MESSAGE = 16 * 2 ** 20;
/** As the library takes it where it is not told. */
const LARGEST_REQUEST = 0xffffffff;
/** A sentence is shorter; what is longer is of somebody else on the way, and not read. */
const LARGEST_REASON = 64 * 2 ** 10;

export function createInsideTransport(baseUrl: string): Transport {
  return createTransport({
    baseUrl,
    httpClient: withReasons(createNodeHttpClient({ httpVersion: "1.1" })),
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 1024,
    readMaxBytes: LARGEST_MESSAGE,
    writeMaxBytes: LARGEST_REQUEST,
  });
}

function withReasons(ask: UniversalClientFn): UniversalClientFn {
  return async (request) => {
    const answer = await ask(request);
    const isJson = (answer.header.get("content-type") ?? "").startsWith("application/json");
    if (answer.status < 400 || !isJson) return answer;
    const body = await beginning(answer);
    const reason = sentence(body);
    if (reason !== undefined) throw new ConnectError(reason, codeFromHttpStatus(answer.status), answer.header);
    return { ...answer, body: again(body) };
  };
}

async function beginning({ body }: UniversalClientResponse): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    if (size > LARGEST_REASON) break;
  }
  return Buffer.concat(parts);
}

async function* again(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}

/** Of an answer of the edge, whose `code` is the status. envd's own errors have a word there, which the library reads. */
function sentence(body: Buffer): string | undefined {
  let read: unknown;
  try {
    read = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  if (typeof read !== "object" || read === null) return undefined;
  const { code, message } = read as { readonly code?: unknown; readonly message?: unknown };
  return typeof code === "number" && typeof message === "string" && message !== "" ? message : undefined;
}
