/** What to do with one request: decided by the edge or the node proxy, carried out by an exchange. Types only. */

import type { Socket } from "node:net";
import type { ClientSide } from "../listening/client.ts";
import type { HeaderEdits } from "../raw-headers.ts";

/** The server itself, or a proxy in front of it. When it cannot be dialled, the next one of the plan is tried. */
export interface NextHop {
  /** Connections with the same key, in one execution, lead to the same server. */
  readonly key: string;
  dial(signal: AbortSignal): Promise<Socket>;
  /** Headers for the next hop only: name, value, name, value, … */
  readonly added: readonly string[];
  /** How long an idle connection is kept, milliseconds. Less than any server we know keeps it. */
  readonly idleMs: number;
  /**
   * The server is ours: it reads every body to its end and keeps idle connections for longer than `idleMs`. Elsewhere a
   * request with a body, or one that must not be sent twice, gets an unshared connection: what a server leaves unread
   * of a body it would take for the next request, and a kept connection may be closing at this moment. Answers of other
   * servers are read as leniently as browsers and curl read them.
   */
  readonly ours: boolean;
  /** The next hop is a node proxy: its `Svc-Proxy-Error` is believed. */
  readonly proxied: boolean;
}

export type Failure =
  /** No next hop could be dialled, and the last answer is that nothing listens. */
  | { readonly is: "closed" }
  /** The next hop itself cannot be reached, so nothing is known of the server. */
  | { readonly is: "unreachable" }
  /**
   * The server closed the connection, or sent something else than HTTP, before a response. `reason` completes
   * "the server: …".
   */
  | { readonly is: "bad_response"; readonly reason: string }
  /** The execution is gone, or is not the one this hop knows. */
  | { readonly is: "removed" }
  /** The agent holds the sandbox frozen, because its node's disk is short. */
  | { readonly is: "held" }
  | { readonly is: "unforwardable"; readonly message: string };

export interface ForwardPlan {
  readonly executionId: string;
  /** Origin-form, or `*`. */
  readonly path: string;
  readonly edits: HeaderEdits;
  readonly nextHops: readonly NextHop[];
  /** Lower-case names of response headers and trailers that stop here. */
  readonly keepsBack: (name: string) => boolean;
  /** Connect streams that are cut off end with an error frame. False: they are only cut, and the previous hop adds it. */
  readonly framesErrors: boolean;
  /** Answers a request that got no response. */
  refuse(client: ClientSide, failure: Failure): void;
}
