/** What was wrong with a server that gave no valid answer, in words that complete "the server: …". Pure. */

/** An answer that cannot be forwarded with its meaning intact; the message is safe to send. */
export class AnswerFault extends Error {
  override readonly name = "AnswerFault";
}

/** By the code of Node's HTTP parser. */
const WORDS: Readonly<Record<string, string>> = {
  HPE_CB_HEADERS_COMPLETE: "its headers cannot be read",
  HPE_CLOSED_CONNECTION: "it sent more bytes than its answer announces",
  HPE_CR_EXPECTED: "a line of its answer does not end with a line break of HTTP",
  HPE_HEADER_OVERFLOW: "the headers of its answer are longer than 64 KiB",
  HPE_INVALID_CHUNK_SIZE: "a chunk of its answer has no valid size",
  HPE_INVALID_CONSTANT: "its answer does not begin with HTTP/1.1 or HTTP/1.0",
  HPE_INVALID_CONTENT_LENGTH: "the Content-Length of its answer is not a number",
  HPE_INVALID_EOF_STATE: "it closed the connection before its answer was complete",
  HPE_INVALID_HEADER_TOKEN: "a header of its answer has no valid name or value",
  HPE_INVALID_STATUS: "the first line of its answer has no status of three digits",
  HPE_INVALID_TRANSFER_ENCODING: "the Transfer-Encoding of its answer cannot be read",
  HPE_INVALID_VERSION: "its answer has an unknown version of HTTP",
  HPE_LF_EXPECTED: "a line of its answer ends with a carriage return alone",
  HPE_UNEXPECTED_CONTENT_LENGTH: "its answer has more than one Content-Length",
};

/** By the code of OpenSSL's errors. */
const HANDSHAKES: Readonly<Record<string, string>> = {
  ECONNRESET: "it closed the connection when TLS began",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS",
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: "it offers no HTTP/1.1 over TLS",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "it offers no version of TLS from 1.2 on",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "it offers no version of TLS from 1.2 on",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS",
};

/** First bytes of a TLS record: an alert or a handshake, of any version. */
const TLS_RECORDS: ReadonlySet<number> = new Set([0x15, 0x16]);
const TLS_MAJOR = 3;
/** The type of the frame with which every HTTP/2 connection begins. */
const HTTP2_SETTINGS = 4;

interface ParserError {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly rawPacket?: Buffer;
}

/** Undefined for an error that says nothing about an answer. */
export function answerFault(error: unknown): string | undefined {
  if (error instanceof AnswerFault) return error.message;
  const { code, message, reason, rawPacket } = (error ?? {}) as ParserError;
  // Node's client reports so a connection that ends without a whole head.
  if (message === "socket hang up") return "it closed the connection before it sent a whole answer";
  if (typeof code !== "string") return undefined;
  if (code === "ECONNRESET" || code === "EPIPE") return "it reset the connection before it answered";
  if (!code.startsWith("HPE_")) return undefined;
  if (code === "HPE_INVALID_CONSTANT") return otherProtocol(rawPacket) ?? WORDS[code];
  const detail = typeof reason === "string" && reason !== "" ? `: ${reason.toLowerCase()}` : "";
  return WORDS[code] ?? `its answer is not valid HTTP/1.1${detail}`;
}

function otherProtocol(bytes: Buffer | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const [first, second, , fourth] = bytes;
  if (first !== undefined && TLS_RECORDS.has(first) && second === TLS_MAJOR)
    return "it speaks TLS (a sandbox names such ports in network.httpsPorts)";
  return first === 0 && second === 0 && fourth === HTTP2_SETTINGS ? "it speaks HTTP/2 without TLS" : undefined;
}

/** Why TLS did not begin with a server that accepts connections. */
export function handshakeFault(error: unknown): string {
  const { code, message } = (error ?? {}) as ParserError;
  const known = typeof code === "string" ? HANDSHAKES[code] : undefined;
  const shown = typeof code === "string" ? code : message;
  const fault = known ?? `it did not begin TLS (${typeof shown === "string" ? shown : "unknown"})`;
  return `${fault} (network.httpsPorts of the sandbox names this port)`;
}
