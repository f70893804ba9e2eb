/** Why a program in a sandbox did not complete TLS with this process, in words for the log of decisions. Pure. */

import { why } from "./upstream.ts";

const DISTRUST =
  "the program does not trust the sandbox's bundle of authorities: let it use the system's certificates (SSL_CERT_FILE), and pin none";

/** By the code of OpenSSL's errors. From OpenSSL 3.2 on, as in Node 24, some begin with another name. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNRESET: "the connection ended in it: perhaps the program does not trust the sandbox's bundle of authorities",
  ERR_SSL_NO_APPLICATION_PROTOCOL:
    "the program speaks HTTP/2 alone (gRPC does), and a host with a rule is reached by HTTP/1.1: take the rule away, or use the host's REST API",
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: DISTRUST,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: DISTRUST,
  "ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE": DISTRUST,
  "ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN": DISTRUST,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: DISTRUST,
  ERR_TLS_HANDSHAKE_TIMEOUT: "the program did not go on with it in time",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "the program offers no version of TLS from 1.2 on",
};

/** @param error of Node's TLS server, or one with such a code */
export function handshakeFailure(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  const words = typeof code === "string" ? WORDS[code] : undefined;
  return `the TLS handshake of the sandbox failed: ${words === undefined ? why(error) : `${words} (${String(code)})`}`;
}
