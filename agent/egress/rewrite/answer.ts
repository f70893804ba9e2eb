/** Answers of the egress process itself: plain text, marked by a header. */

import type { ProxyAnswer } from "../../../shared/proxy/listening/answer.ts";
import type { Failure } from "../../../shared/proxy/sending/forward-plan.ts";
import { UnresolvedError } from "./placeholders.ts";
import { Refusal } from "./request-head.ts";
import { UpstreamError, why } from "./upstream.ts";

/** Header on answers that are not the destination's. */
const MARK = ["svc-egress", "refused"] as const;

export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof UnresolvedError || error instanceof UpstreamError) return new Refusal(502, error.message);
  return new Refusal(502, `the destination failed: ${why(error)}`);
}

export function refusalOfFailure(failure: Failure): Refusal {
  if (failure.is === "closed") return refusalOf(failure.cause);
  if (failure.is === "bad_response") return new Refusal(502, `the destination failed: ${failure.reason}`);
  // The words of another error would hold the refused value.
  if (failure.is === "unforwardable")
    return new Refusal(400, "the request target or a header has characters that cannot be sent");
  return new Refusal(502, "the connection has ended");
}

export function answerOf({ status, message }: Refusal): ProxyAnswer {
  const body = `svc: ${message}\n`;
  const length = `${Buffer.byteLength(body)}`;
  return { status, headers: ["Content-Type", "text/plain; charset=utf-8", "Content-Length", length, ...MARK], body };
}
