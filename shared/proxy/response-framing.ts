/** Where the body of a server's answer ends for the client, and under which names. Pure. */

import type { IncomingMessage } from "node:http";
import { AnswerFault } from "./answer-fault.ts";
import { headerValue } from "./raw-headers.ts";

export interface ResponseFraming {
  /** The value of Content-Length; undefined where the server sent none that counts. */
  readonly length: string | undefined;
  /** The value of Transfer-Encoding, chunked last; undefined where the body is not sent in chunks. */
  readonly codings: string | undefined;
  /** False: the body ends with the connection. */
  readonly framed: boolean;
}

type Request = Pick<IncomingMessage, "method" | "httpVersionMinor">;
type Answer = Pick<IncomingMessage, "statusCode" | "rawHeaders">;

/** @throws {AnswerFault} when the body cannot be forwarded with its meaning intact */
export function responseFraming(request: Request, { statusCode: status, rawHeaders }: Answer): ResponseFraming {
  const length = headerValue(rawHeaders, "content-length");
  if (request.method === "HEAD" || status === 204 || status === 304) {
    return { length: status === 204 ? undefined : length, codings: undefined, framed: true };
  }
  const coded = headerValue(rawHeaders, "transfer-encoding") !== undefined;
  // Transfer-Encoding decides where the body ends, also beside a length (RFC 9112 §6.3).
  if (!coded && length !== undefined) return { length, codings: undefined, framed: true };
  const others = coded ? bodyCodings(rawHeaders) : [];
  if (request.httpVersionMinor > 0)
    return { length: undefined, codings: [...others, "chunked"].join(", "), framed: true };
  if (others.length === 0) return { length: undefined, codings: undefined, framed: false };
  throw new AnswerFault(`its answer has the transfer coding ${others.join(", ")}, which HTTP/1.0 cannot carry`);
}

/**
 * The transfer codings besides chunked, in their order. The body of these is forwarded as it is, so their names have to be
 * forwarded too. Where chunked is not the last one, no reader can know where the body ends.
 */
function bodyCodings(rawHeaders: readonly string[]): readonly string[] {
  const codings: string[] = [];
  let chunked = false;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== "transfer-encoding") continue;
    for (const part of (rawHeaders[at + 1] ?? "").toLowerCase().split(",")) {
      const coding = part.trim();
      if (coding === "chunked") chunked = true;
      else if (coding !== "" && coding !== "identity") {
        if (chunked)
          throw new AnswerFault("its answer has a Transfer-Encoding in which chunked is not the last coding");
        if (!CODING.test(coding)) throw new AnswerFault("its answer has a Transfer-Encoding that cannot be read");
        codings.push(coding);
      }
    }
  }
  return codings;
}

const CODING = /^[a-z\d!#$%&'*+.^_`|~-]+$/;
