/** What was wrong with an attempt: a class for programs, and a sentence for people that names the way out. Pure. */

import { redacted } from "./redact.ts";

export type ErrorClass =
  | "event_gone"
  | "http_status"
  | "redirect"
  | "gone"
  | "timeout"
  | "forbidden_address"
  | "dns"
  | "tls"
  | "connection";

interface Fault {
  readonly errorClass: ErrorClass;
  readonly error: string;
}

export class ForbiddenAddress extends Error {}

const MAX_LOCATION = 300;

/** @param location of the answer, as the receiver of `url` sent it. Undefined: delivered */
export function faultOfStatus(status: number, location: string | undefined, url: URL): Fault | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 410) return { errorClass: "gone", error: "the receiver answered 410: it wants no more deliveries" };
  if (status >= 300 && status < 400) {
    const target = targetOf(location, url);
    const way = target === undefined ? "" : `: if ${target} is the receiver, set it as the webhook's url`;
    return { errorClass: "redirect", error: `the receiver answered ${status}, and redirects are not followed${way}` };
  }
  return { errorClass: "http_status", error: `the receiver answered ${status}` };
}

/** Undefined for no target that a webhook could have. */
function targetOf(location: string | undefined, url: URL): string | undefined {
  if (location === undefined || !URL.canParse(location, url.href)) return undefined;
  const target = new URL(location, url);
  const isPossible = /^https?:$/.test(target.protocol) && target.username === "" && target.password === "";
  target.hash = "";
  if (!isPossible || target.href === url.href || target.href.length > MAX_LOCATION) return undefined;
  return redacted(target.href, "");
}

/** OpenSSL's names of what is wrong with a certificate, and Node's of what is wrong with a handshake. */
const OF_TLS =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_|PATH_LENGTH|EPROTO$)|CERT|TLS|SSL/;
const PLAIN = "the receiver does not speak TLS on this port: if it is meant so, its url begins with http://";
const VERSION = "the receiver offers no version of TLS from 1.2 on";
const UNKNOWN_AUTHORITY = "no authority that this machine trusts has signed the receiver's certificate";

const TLS_WORDS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "the receiver's certificate has expired",
  CERT_NOT_YET_VALID: "the receiver's certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the receiver's certificate is signed by itself",
  ERR_SSL_HTTP_REQUEST: PLAIN,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: PLAIN,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: VERSION,
  ERR_SSL_UNSUPPORTED_PROTOCOL: VERSION,
  ERR_SSL_WRONG_VERSION_NUMBER: PLAIN,
  ERR_TLS_CERT_ALTNAME_INVALID: "the receiver's certificate is for another name",
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: `${UNKNOWN_AUTHORITY}, or the receiver does not send its intermediate certificates`,
};

export function faultOfError(reason: unknown): Fault {
  const found = first(reason);
  if (found instanceof ForbiddenAddress) {
    return {
      errorClass: "forbidden_address",
      error: "the target is an address of the platform or of a private network; SVC_WEBHOOK_ALLOW may name its range",
    };
  }
  const { code: given, message } = found instanceof Error ? (found as NodeJS.ErrnoException) : {};
  const code = typeof given === "string" ? given : "";
  const shown = code === "" ? "" : ` (${code})`;
  if (code === "EAI_AGAIN") return { errorClass: "dns", error: `the name could not be resolved now${shown}` };
  if (/^(ENOTFOUND|EAI_|ENODATA)/.test(code)) return { errorClass: "dns", error: `the name was not found${shown}` };
  if (OF_TLS.test(code)) {
    const words = TLS_WORDS[code];
    return { errorClass: "tls", error: `TLS failed${words === undefined ? "" : `: ${words}`}${shown}` };
  }
  // Node has no code of its own for it.
  if (message !== undefined && /before secure TLS connection/.test(message))
    return { errorClass: "tls", error: `TLS failed: the receiver ended the connection in the handshake${shown}` };
  if (code === "HPE_HEADER_OVERFLOW")
    return { errorClass: "connection", error: `the head of the receiver's answer is too long${shown}` };
  if (code.startsWith("HPE_"))
    return { errorClass: "connection", error: `what the receiver answered is not HTTP/1.1${shown}` };
  return { errorClass: "connection", error: `the connection failed${shown}` };
}

/** Of a name with several addresses the failures come together. */
function first(reason: unknown): unknown {
  return reason instanceof AggregateError ? (reason.errors[0] ?? reason) : reason;
}
