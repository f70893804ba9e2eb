/** Reads a connection's name from its first bytes without consuming them; bounded in bytes and time. */

import type { Socket } from "node:net";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { type Glimpse, glimpseServerName } from "./client-hello.ts";
import { glimpseHost } from "./request-head.ts";

export interface Sniffed {
  /** In the spelling of `hostName`. Absent when there is none, or none for certain: then only addresses count. */
  readonly hostname?: string;
  /** All bytes that were read, to be sent first. */
  readonly first: Buffer;
}

export interface Manner {
  readonly glimpse: (bytes: Buffer) => Glimpse;
  readonly maxBytes: number;
}

const TIME_LIMIT_MS = 5_000;
const TLS: Manner = { glimpse: glimpseServerName, maxBytes: 16 * 1024 };
const HTTP: Manner = { glimpse: glimpseHost, maxBytes: 32 * 1024 };

/**
 * Which kind of name to look for: only on the two ports whose clients send first, and under policies with names. Other
 * connections are not touched, because their server may send first.
 */
export function manner(port: number, { allowDomains, rules }: EgressPolicy): Manner | undefined {
  if (allowDomains.length === 0 && rules.length === 0) return undefined;
  if (port === 443) return TLS;
  return port === 80 ? HTTP : undefined;
}

/** The socket is paused before and after; `undefined` when it closed meanwhile. */
export function sniff(
  socket: Socket,
  { glimpse, maxBytes }: Manner,
  limitMs = TIME_LIMIT_MS,
): Promise<Sniffed | undefined> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    const state = { wanted: 1, used: 0 };
    const finish = (result: Sniffed | undefined) => {
      clearTimeout(timer);
      socket.pause();
      socket.off("data", take).off("end", undecided).off("close", gone);
      resolve(result);
    };
    const undecided = () => finish({ first: bytes.subarray(0, state.used) });
    const gone = () => finish(undefined);
    const take = (chunk: Buffer) => {
      bytes = room(bytes, state.used, chunk.length);
      state.used += chunk.copy(bytes, state.used);
      // Waits for as many bytes as the parser needs, instead of parsing after every single byte.
      if (state.used < state.wanted) return;
      const first = bytes.subarray(0, state.used);
      const seen = glimpse(first);
      if (seen.is === "name") return finish({ hostname: seen.name, first });
      if (seen.is === "none" || state.used >= maxBytes || (seen.is === "more" && seen.bytes > maxBytes))
        return undecided();
      state.wanted = seen.bytes;
    };
    const timer = setTimeout(undecided, limitMs);
    socket.on("data", take).on("end", undecided).on("close", gone);
    if (socket.destroyed) gone();
    else socket.resume();
  });
}

function room(bytes: Buffer, used: number, more: number): Buffer {
  if (used + more <= bytes.length) return bytes;
  const bigger = Buffer.allocUnsafe(Math.max(used + more, bytes.length * 2, 1_024));
  bytes.copy(bigger, 0, 0, used);
  return bigger;
}
