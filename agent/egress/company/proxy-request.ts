/** Reads what a program asks of a proxy: `CONNECT host:port`, or a request with a whole http address. Pure. */

import { nameOnWire } from "../../../shared/policy/names.ts";
import { addressNumber } from "../../../shared/policy/ranges.ts";
import type { Manner } from "../sniff/sniff.ts";

export interface ProxyRequest {
  /** `tunnel`: bytes in both directions after our answer. `plain`: HTTP requests with whole addresses. */
  readonly kind: "tunnel" | "plain";
  /** In the spelling of `hostName`, or an IPv4 address. */
  readonly host: string;
  readonly port: number;
}

const MOST_BYTES = 32 * 1024;
const TUNNEL = /^CONNECT ([^\s:/@?#]+):(\d{1,5}) HTTP\/1\.[01]$/;
const PLAIN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} http:\/\/([^\s:/@?#]+)(?::(\d{1,5}))?(?:[/?][!-~]*)? HTTP\/1\.[01]$/i;
const PLAIN_PORT = 80;

/** Waits for a whole head; the name is its first line. */
export const PROXY_MANNER: Manner = {
  maxBytes: MOST_BYTES,
  glimpse(bytes) {
    const end = bytes.indexOf("\r\n\r\n");
    if (end < 0) return { is: "more", bytes: bytes.length + 1 };
    return { is: "name", name: bytes.toString("latin1", 0, bytes.indexOf("\r\n")) };
  },
};

/** Returns undefined for text that is not a request to a proxy, and for a request that two programs could read differently. */
export function readProxyRequest(line: string): ProxyRequest | undefined {
  const tunnel = TUNNEL.exec(line);
  const [, written = "", number = `${PLAIN_PORT}`] = tunnel ?? PLAIN.exec(line) ?? [];
  const port = Number(number);
  const host = addressNumber(written) === undefined ? nameOnWire(written) : written;
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  return { kind: tunnel === null ? "plain" : "tunnel", host, port };
}

/** The bytes after the head of a `tunnel` request. */
export function afterHead(first: Buffer): Buffer {
  return first.subarray(first.indexOf("\r\n\r\n") + 4);
}
