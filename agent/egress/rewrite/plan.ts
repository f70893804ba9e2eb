/** A sandbox's request to a host with a rule, as an exchange carries it: checked, and with the values of its placeholders. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { ClientSide } from "../../../shared/proxy/listening/client.ts";
import { headerValue } from "../../../shared/proxy/raw-headers.ts";
import type { ForwardPlan } from "../../../shared/proxy/sending/forward-plan.ts";
import type { Forwarder } from "../../../shared/proxy/sending/forwarder.ts";
import type { TransformOptions } from "../carry/carried.ts";
import { answerOf, refusalOf, refusalOfFailure } from "./answer.ts";
import { IDLE_LIMIT_MS } from "./client-server.ts";
import { carryLongBody } from "./long-body.ts";
import { needsValues, type Resolve, resolveHeaders } from "./placeholders.ts";
import { checkHead, type Destination, forProxy, Refusal, ruled, tokens } from "./request-head.ts";

/** How long a client may send the rest of a body after its answer. */
const REST_OF_BODY_MS = 10_000;

export interface Rewriting {
  readonly destination: Destination;
  readonly headers: Readonly<Record<string, string>>;
  /** False: a request that needs the value of a placeholder is refused, because it would be sent without TLS. */
  readonly valuesAllowed: boolean;
  readonly resolve: Resolve;
  readonly proxied?: TransformOptions["proxied"];
  readonly forwarder: Forwarder;
  /** Opens a connection to the destination. */
  readonly dial: (signal: AbortSignal) => Promise<Socket>;
  /** Told why a request gets none of the destination's answer, in the words for the sandbox. */
  failed(reason: string): void;
}

/** Resolves once the request is under way, or has been refused. Never rejects. */
export async function rewrite(client: ClientSide, rewriting: Rewriting): Promise<void> {
  const { rawHeaders } = client.request;
  const refuse = (refusal: Refusal) => {
    rewriting.failed(refusal.message);
    // A client that got no 100 Continue may send its body next, or another request.
    const keepsOpen = refusal.status === 502 && headerValue(rawHeaders, "expect") === undefined;
    if (!client.gone) client.refuse({ ...answerOf(refusal), keepsOpen });
  };
  try {
    const plan = await planFor(client.request, rewriting, refuse);
    if (!client.gone) rewriting.forwarder.forward(plan, client);
  } catch (error) {
    refuse(refusalOf(error));
  }
}

/** @throws {Refusal} or what `resolveHeaders` throws */
async function planFor(
  request: IncomingMessage,
  { destination, headers, valuesAllowed, resolve, proxied, dial }: Rewriting,
  refuse: (refusal: Refusal) => void,
): Promise<ForwardPlan> {
  const { method = "", url = "", httpVersion, rawHeaders } = request;
  const head = { method, url, httpVersion, rawHeaders };
  const path = checkHead(head, destination);
  // The answer to TRACE is the request as it arrived, with the headers that the sandbox must not see.
  if (method === "TRACE" && Object.keys(headers).length > 0)
    throw new Refusal(405, "TRACE would show the headers of a rule");
  if (!valuesAllowed && needsValues(headers)) {
    throw new Refusal(
      403,
      `the rule of ${destination.hostname} has placeholders, whose values are sent over TLS only: use https`,
    );
  }
  const { edits, added } = ruled(head, destination, await resolveHeaders(headers, resolve));
  const sent = proxied === undefined ? { path, added } : forProxy(path, edits.host, added, proxied.authorization);
  return {
    executionId: destination.hostname,
    path: sent.path,
    edits,
    nextHops: [{ key: "destination", dial, added: sent.added, idleMs: IDLE_LIMIT_MS, ours: false, proxied: false }],
    // The sandbox has limits of its own.
    patience: { stallMs: 0, restMs: REST_OF_BODY_MS },
    keepsBack: () => false,
    framesErrors: false,
    passesResets: false,
    // Requests in another protocol could name another host.
    maySwitch: (asked, chosen) => tokens(chosen).every((protocol) => tokens(asked).includes(protocol)),
    carryBody: carryLongBody,
    refuse: (_client, failure) => refuse(refusalOfFailure(failure)),
  };
}
