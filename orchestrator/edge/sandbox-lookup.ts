/** The data about sandboxes that the edge reads. The orchestrator's routing table implements `EdgeRoutingTable`. */

import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import type { Signed } from "./signed-url.ts";

/** A sandbox as the edge sees it. Each start of a sandbox makes a new object with another execution id. */
export interface EdgeRoute {
  readonly sandboxId: string;
  readonly executionId: string;
  readonly state: SandboxState;
  /** The sandbox is frozen: it would accept connections and never answer. */
  readonly held?: boolean;
  readonly nodeId: string;
  /** URL of the node's proxy, e.g. `http://10.0.0.5:5011`. */
  readonly proxyUrl: string;
  /** The container's address: reachable from the node only. */
  readonly address: string;
  /** The node is this machine, so the edge may dial the container without the node's proxy. */
  readonly sameHost: boolean;
  /** envd's `X-Access-Token`; also the key of signed file URLs. */
  readonly envdAccessToken: string;
  /** Required on every port but envd's when `allowPublicTraffic` is false. */
  readonly trafficAccessToken?: string | undefined;
  readonly allowPublicTraffic: boolean;
  /** `host[:port]` put in place of Host on every port but envd's; `${PORT}` is replaced. */
  readonly maskRequestHost?: string | undefined;
  /** Ports whose servers speak TLS; their certificates are not verified. Never envd's. */
  readonly httpsPorts: readonly number[];
}

/** Why a route was removed: decides how its streams end. */
export type RemovalReason = "killed" | "paused" | "lost";

/** Called in the tick in which the route is removed; the remover awaits the promise before it answers its caller. */
export type RemovalListener = (executionId: string, sandboxId: string, reason?: RemovalReason) => void | Promise<void>;

export interface EdgeRoutingTable {
  lookup(sandboxId: string): EdgeRoute | undefined;
  /** The route of a running sandbox with this envd token, found by an index. */
  byToken(envdAccessToken: string): EdgeRoute | undefined;
  /** Every route of a running sandbox, because signed file URLs name no sandbox. */
  running(): Iterable<EdgeRoute>;
  /** Returns the function that removes the listener. */
  onRemove(listener: RemovalListener): () => void;
}

/** Credentials of a visitor, checked before anything is resumed. */
export interface VisitorTokens {
  /** Values of both headers: one valid value is enough, as for a running sandbox. */
  readonly trafficAccessTokens?: readonly string[] | undefined;
  readonly envdAccessToken?: string | undefined;
  /** A signed file URL: its signature proves that the sender knows envd's token. */
  readonly signed?: Signed | undefined;
  /** An API key. It resumes nothing, but the sandbox's project may know that the sandbox is paused. */
  readonly apiKey?: string | undefined;
}

/** A paused sandbox, as far as a signed URL needs to know it. */
export interface PausedSandbox {
  readonly sandboxId: string;
  readonly envdAccessToken: string;
}

export type AutoResumeResult =
  | { readonly is: "running"; readonly route: EdgeRoute }
  /** The sandbox is unknown or deleted, or does not resume by traffic and the visitor holds no token of it. */
  | { readonly is: "not_found" }
  /** It was not resumed, and the visitor holds a token of it. */
  | { readonly is: "paused" }
  | { readonly is: "denied"; readonly message: string }
  | { readonly is: "transitioning" }
  | { readonly is: "limited"; readonly message: string };

/** Resumes a paused sandbox whose policy allows it, while the visitor's request waits. */
export type AutoResume = (
  sandboxId: string,
  port: number,
  tokens: VisitorTokens,
  signal: AbortSignal,
) => Promise<AutoResumeResult>;

/** Where the records have a sandbox. */
export type Whereabouts =
  | { readonly is: "running"; readonly route: EdgeRoute }
  /** `moving`: a drain has taken it from its node, and starts it again. */
  | { readonly is: "paused"; readonly moving: boolean }
  | { readonly is: "not_found" }
  /** Its state is about to change. */
  | { readonly is: "transitioning" };

/** Looks a sandbox up, and resumes nothing. */
export type FindSandbox = (sandboxId: string) => Promise<Whereabouts>;

/** Nothing is known of the sandbox, because no orchestrator can be asked. */
export class OrchestratorAway extends Error {
  constructor() {
    super("no orchestrator can be asked at the moment");
    this.name = "OrchestratorAway";
  }
}
