/** Reads the failure that the node's proxy reports in a header of its answer. Pure. */

import type { IncomingMessage } from "node:http";
import {
  isProxyError,
  LEASE_REASON,
  PROXY_ERROR_HEADER,
  PROXY_REASON_HEADER,
  UNDER_WAY_REASON,
} from "../hop-contract.ts";
import { headerValue } from "../raw-headers.ts";
import type { Failure } from "./forward-plan.ts";

/** A proxy of an older version sends no reason. */
const UNKNOWN = "it closed the connection or did not answer in HTTP";

/** The failure that the node's proxy reports in its answer; undefined: the answer is the server's. */
export function proxyFailure(answer: IncomingMessage): Failure | undefined {
  const value = headerValue(answer.rawHeaders, PROXY_ERROR_HEADER);
  if (value === undefined || !isProxyError(value)) return undefined;
  if (value === "unforwardable") return { is: "unforwardable", message: "the request cannot be forwarded" };
  const reason = headerValue(answer.rawHeaders, PROXY_REASON_HEADER);
  if (value === "bad_response") return { is: value, reason: reason ?? UNKNOWN };
  if (value === "held") return { is: value, cutOff: reason === LEASE_REASON };
  if (value === "removed" || value === "stopping") return { is: value, underWay: reason === UNDER_WAY_REASON };
  // The proxy has refused the edge, perhaps after some of the body.
  return value === "unauthorized" ? { is: "unreachable", unsent: false } : { is: value };
}
