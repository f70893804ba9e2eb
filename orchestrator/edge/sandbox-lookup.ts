/** What the edge needs to know of sandboxes, and from whom. The orchestrator's routing table implements `EdgeRoutes`. */

import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import type { Signed } from "./signed-url.ts";

/** One sandbox, as its traffic sees it. A new start of the same sandbox is a new object with another execution id. */
export interface EdgeRoute {
  readonly sandboxId: string;
  readonly executionId: string;
  readonly state: SandboxState;
  /** It stands still: it would take connections and never answer. */
  readonly held?: boolean;
  readonly nodeId: string;
  /** The node's proxy, e.g. `http://10.0.0.5:5011`. */
  readonly proxyUrl: string;
  /** The container's address: reachable from the node only. */
  readonly address: string;
  /** The node is this machine: the container may be dialled without the node's proxy. */
  readonly sameHost: boolean;
  /** What envd asks for in `X-Access-Token`; also the key of signed file URLs. */
  readonly envdAccessToken: string;
  /** Asked for on every port but envd's when `allowPublicTraffic` is false. */
  readonly trafficAccessToken?: string | undefined;
  readonly allowPublicTraffic: boolean;
  /** `host[:port]` put in place of Host on every port but envd's; `${PORT}` is replaced. */
  readonly maskRequestHost?: string | undefined;
  /** Ports whose servers speak TLS; their certificates are not verified. Never envd's. */
  readonly httpsPorts: readonly number[];
}

/** Why an execution's route went away: decides what its streams are told. */
export type RemovalReason = "killed" | "paused" | "lost";

/** Called in the tick in which the route is removed; the remover waits for the promise before it answers its caller. */
export type RemovalListener = (executionId: string, sandboxId: string, reason?: RemovalReason) => void | Promise<void>;

export interface EdgeRoutes {
  lookup(sandboxId: string): EdgeRoute | undefined;
  /** Every route of a running sandbox; signed file URLs name none. */
  running(): Iterable<EdgeRoute>;
  /** Returns the function that removes the listener. */
  onRemove(listener: RemovalListener): () => void;
}

/** What a visitor showed: checked by the waker before anything is resumed. */
export interface WakeTokens {
  /** Of both headers: one that holds is enough, as while it runs. */
  readonly trafficAccessTokens?: readonly string[] | undefined;
  readonly envdAccessToken?: string | undefined;
  /** A signed file URL: what takes envd's token to make is as good as showing it. */
  readonly signed?: Signed | undefined;
}

/** A sandbox that is asleep, as far as a signed URL needs to know it. */
export interface Sleeper {
  readonly sandboxId: string;
  readonly envdAccessToken: string;
}

export type WakeResult =
  | { readonly is: "running"; readonly route: EdgeRoute }
  /** Unknown, gone, or not to be woken by traffic. */
  | { readonly is: "not_found" }
  | { readonly is: "denied"; readonly message: string }
  | { readonly is: "transitioning" }
  | { readonly is: "limited"; readonly message: string };

/** Resumes a paused sandbox whose policy says so; the visitor's request is held meanwhile. */
export type Wake = (sandboxId: string, port: number, tokens: WakeTokens, signal: AbortSignal) => Promise<WakeResult>;
