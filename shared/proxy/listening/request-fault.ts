/** What was wrong with bytes that are no request, in words that complete "the request is malformed: …". Pure. */

import type { ClientError } from "./unknown-method.ts";

const LINES = "a line of it does not end with CR LF";
const CHUNKS = "a chunk of its body has no valid size";

/** By the code of Node's HTTP parser. */
const WORDS: Readonly<Record<string, string>> = {
  HPE_CR_EXPECTED: LINES,
  HPE_INVALID_CHUNK_SIZE: CHUNKS,
  HPE_INVALID_CONSTANT: "its first line is not a method, a target and HTTP/1.1, with one space between them",
  HPE_INVALID_CONTENT_LENGTH: "its Content-Length is not a number, or stands beside Transfer-Encoding",
  HPE_INVALID_HEADER_TOKEN: "a header has no valid name or value, or goes on in a second line",
  HPE_INVALID_TRANSFER_ENCODING: "its Transfer-Encoding does not end with chunked, or stands beside Content-Length",
  HPE_INVALID_URL: "its target is not a path, or has a character that must be percent-encoded",
  HPE_LF_EXPECTED: LINES,
  HPE_STRICT: CHUNKS,
  HPE_UNEXPECTED_CONTENT_LENGTH: "it has more than one Content-Length",
};

/** The parser reports a line feed alone behind the version as a wrong version. */
const VERSION_LINE = "Expected CRLF after version";

/** Whether the version is one that is not spoken, and not just the end of its line that is wrong. */
export function hasOtherVersion({ code, reason }: ClientError): boolean {
  return code === "HPE_PAUSED_H2_UPGRADE" || (code === "HPE_INVALID_VERSION" && reason !== VERSION_LINE);
}

/** Undefined for bytes that do not look like a request at all. */
export function requestFault({ code = "", reason }: ClientError): string | undefined {
  return reason === VERSION_LINE ? LINES : WORDS[code];
}
