/** The headers with which a server's answer goes on to the client. Pure. */

import type { IncomingMessage } from "node:http";
import { endToEnd, headerValue, writableText } from "./raw-headers.ts";
import { type ResponseFraming, responseFraming } from "./response-framing.ts";

const UPGRADE_REQUIRED = 426;

export interface AnswerHead extends ResponseFraming {
  /** Name, value, name, value, … */
  readonly headers: string[];
}

export interface AnswerHeadOptions {
  /** Lower-case names of headers that stop here. */
  readonly keepsBack: (name: string) => boolean;
  /** The client's connection is to end with this answer. */
  readonly closes: boolean;
}

/** @throws {AnswerFault} when the answer cannot be forwarded with its meaning intact */
export function answerHead(
  request: Pick<IncomingMessage, "method" | "httpVersionMinor">,
  answer: Pick<IncomingMessage, "statusCode" | "rawHeaders">,
  { keepsBack, closes }: AnswerHeadOptions,
): AnswerHead {
  const { rawHeaders, statusCode = 502 } = answer;
  const framing = responseFraming(request, answer);
  const { length, codings } = framing;
  const headers = endToEnd(
    rawHeaders,
    (name) => name === "content-length" || (name === "trailer" && codings === undefined) || keepsBack(name),
  );
  if (length !== undefined) headers.push("Content-Length", length);
  // The explicit header lets trailers follow.
  if (codings !== undefined) headers.push("Transfer-Encoding", codings);
  // A header about the connection would make Node forget that the client asked for its end.
  headers.push(...connectionHeaders(rawHeaders, statusCode, closes));
  return { ...framing, headers };
}

/** What this hop says about the connection: 426 names the protocols that the server wants (RFC 9110 §15.5.22). */
function connectionHeaders(rawHeaders: readonly string[], status: number, closes: boolean): string[] {
  const upgrade = status === UPGRADE_REQUIRED ? headerValue(rawHeaders, "upgrade") : undefined;
  if (upgrade !== undefined)
    return ["Upgrade", writableText(upgrade), "Connection", closes ? "close, Upgrade" : "Upgrade"];
  return closes ? ["Connection", "close"] : [];
}
