/** What to do with one request: decided by an adapter, carried out by an exchange. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ClientSide } from "../listening/client.ts";
import type { HeaderEdits } from "../raw-headers.ts";
import type { Switching, SwitchOptions } from "./switch-options.ts";

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
  /** No next hop could be dialled, and the last answer is that nothing listens. `cause` is what the last dialling threw. */
  | { readonly is: "closed"; readonly cause?: unknown }
  /** The next hop itself cannot be reached, so nothing is known of the server. `unsent`: it got nothing of the request, nor of its body. */
  | { readonly is: "unreachable"; readonly unsent: boolean }
  /**
   * The server closed the connection, or sent something else than HTTP, before a response. `reason` completes
   * "the server: …".
   */
  | { readonly is: "bad_response"; readonly reason: string }
  /** The execution is gone, or is not the one this hop knows. `underWay`: it may have got the request before. */
  | { readonly is: "removed"; readonly underWay: boolean }
  /** The node's proxy ends, and the sandbox runs on. `underWay`: it may have got the request before, which must not be sent twice. */
  | { readonly is: "stopping"; readonly underWay: boolean }
  /** The agent holds the sandbox frozen, because its node's disk is short, or because no orchestrator answers the node. */
  | { readonly is: "held"; readonly cutOff: boolean }
  | { readonly is: "unforwardable"; readonly message: string };

/** How long an exchange waits for its two sides, milliseconds. */
interface Patience {
  /** Without a byte of a body for so long, or of an answer that its client reads, the client is gone. 0: no limit. */
  readonly stallMs: number;
  /** How long a client may send the rest of a body after the whole answer. 0: its rest is read, and discarded. */
  readonly restMs: number;
}

/** The body of an answer whose head the client has, or is about to get. */
export interface AnswerBody {
  readonly request: IncomingMessage;
  readonly answer: IncomingMessage;
  readonly response: ServerResponse;
  /** 0: not known. */
  readonly length: number;
  /** Carries the body the usual way, through the parser. */
  readonly carry: () => void;
  /** Call when the response has been given all of the body, past the parser. */
  readonly over: () => void;
}

/**
 * What differs between those who use an exchange. The proxies are one adapter (`orchestrator/edge/edge.ts`,
 * `agent/proxy/node-proxy.ts`), the header rewriter is the other (`agent/egress/rewrite/plan.ts`).
 */
export interface ForwardPlan {
  /** Connections are kept, and ended, by execution. */
  readonly executionId: string;
  /** Origin-form, or `*`; absolute-form where the next hop is a proxy that wants it. */
  readonly path: string;
  readonly edits: HeaderEdits;
  readonly nextHops: readonly NextHop[];
  readonly patience: Patience;
  /** Lower-case names of response headers and trailers that stop here. */
  readonly keepsBack: (name: string) => boolean;
  /** Connect streams that are cut off end with an error frame. False: they are only cut, and the previous hop adds it. */
  readonly framesErrors: boolean;
  /** A server sees a reset where the client has reset its connection. False: it sees an end. */
  readonly passesResets: boolean;
  /** Whether a server that was asked for the one protocol may switch to the other. Absent: it may. */
  readonly maySwitch?: (asked: string, chosen: string) => boolean;
  /** Carries WebSockets that are asked for by GET. Absent: they are carried as every other protocol. */
  readonly sendWebSocket?: (options: SwitchOptions) => Switching;
  /** Answers a request that got no response. */
  refuse(client: ClientSide, failure: Failure): void;
  /** Carries bodies of answers; absent: they go through the parser. */
  readonly carryBody?: (body: AnswerBody) => void;
}
