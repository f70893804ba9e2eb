/** Sends the edge's own answers: a refusal as a page, JSON or text, and the answer to a preflight. */

import type { ClientSide } from "../../shared/proxy/listening/client.ts";
import { headerValue } from "../../shared/proxy/raw-headers.ts";
import { type Answer, answerFor, preflightAnswer, type Refusal } from "./answers/answers.ts";
import { isPreflight, readerOf } from "./answers/navigation.ts";

/** Sends a refusal. A preflight gets a success instead, so that the browser goes on and can read the refusal. */
export function refuse(client: ClientSide, refusal: Refusal | Answer): void {
  const { method, rawHeaders } = client.request;
  if (!isPreflight(method, rawHeaders)) send(client, refusal);
  else client.refuse(preflightAnswer(headerValue(rawHeaders, "access-control-request-headers")));
}

/** Sends a refusal to every client, preflights included. */
export function send(client: ClientSide, refusal: Refusal | Answer): void {
  client.refuse("is" in refusal ? answerFor(refusal, readerOf(client.request.rawHeaders)) : refusal);
}
