/**
 * Messages between the agent and its egress process: JSON over the IPC channel of a child process. The egress process
 * keeps nothing: it gets every sandbox with `begin`, listens only then, and ends when the channel closes, so that no
 * flow is decided by a policy that the agent does not know.
 */

import type { NetworkLogEntry } from "../../../shared/agent-api/network-shapes.ts";
import type { ConnectionRequest, Decision } from "../../../shared/policy/decide.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";

/** A running sandbox as the egress process knows it, by its source address. */
export interface SandboxEgress {
  readonly address: string;
  readonly executionId: string;
  readonly sandboxId: string;
  readonly policy: EgressPolicy;
}

/** An authority, or a leaf that one has signed; PEM. */
export interface CertificateWithKey {
  readonly certificate: string;
  readonly key: string;
}

/** A proxy of the operator that leads to the internet (HTTP, CONNECT for TLS). Sandboxes never see it. */
export interface CompanyProxy {
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; a secret. */
  readonly authorization?: string;
}

/** For plain HTTP, and for tunnels. At least one of them. */
export interface CompanyProxies {
  readonly http?: CompanyProxy;
  readonly https?: CompanyProxy;
}

export interface Begin {
  readonly is: "begin";
  /** The address of the sockets that the process was started with. */
  readonly gateway: string;
  /** `SVC_DNS_UPSTREAM`: host[:port],… or empty for the resolvers of the machine. */
  readonly dnsUpstream: string;
  /** PEM: signs the certificates that sandboxes see for hosts with a rule. */
  readonly authority: CertificateWithKey;
  /** PEM of authorities that destinations may have besides the machine's; empty: none. */
  readonly extraCertificates: string;
  readonly connectionsPerSandbox: number;
  /** Ranges in which the operator allows egress proxies, although sandboxes never reach them (`a.b.c.d/n`). */
  readonly proxyAllowedRanges: readonly string[];
  /** Set: sandboxes may use the process's own address and port as their proxy. */
  readonly companyProxies?: CompanyProxies;
  readonly sandboxes: readonly SandboxEgress[];
}

/** Answered by `done` once it is in force and every open flow that the policy forbids is cut, or by `failed`. */
export interface SetPolicy {
  readonly is: "set";
  readonly id: number;
  readonly sandbox: SandboxEgress;
}

/** Ends its flows; further connections from the address are closed. Answered by `done`. */
export interface Forget {
  readonly is: "forget";
  readonly id: number;
  readonly address: string;
}

/** Asks what would happen to a flow; a name is resolved as for a flow. Answered by `checked` or `failed`. */
export interface CheckFlow {
  readonly is: "check";
  readonly id: number;
  readonly address: string;
  readonly flow: Omit<ConnectionRequest, "address"> & { readonly address?: string };
}

/** A value, or why there is none, for people in the sandbox: the request that needs it fails with these words. */
export type PlaceholderAnswer = { readonly value: string } | { readonly problem: string };

export interface ResolvedValue {
  readonly answer: PlaceholderAnswer;
  /** How long the value may be used for further requests of the execution, while its policy is the same; 0: for none. */
  readonly keepMs: number;
}

/** The answer to `resolve`. */
export interface Resolved extends ResolvedValue {
  readonly is: "resolved";
  readonly id: number;
}

/** Asks for the value of `${placeholder}` in a header of a request to `host`, for this execution, at the moment of use. */
export interface AskedValue {
  readonly executionId: string;
  /** In the `e2b` spelling, without `${` and `}`. */
  readonly placeholder: string;
  readonly host: string;
}

export type ToEgress = Begin | SetPolicy | Forget | CheckFlow | Resolved;

export type FromEgress =
  /** Everything of `begin` is in force; connections are accepted. */
  | { readonly is: "ready" }
  | { readonly is: "done"; readonly id: number }
  | { readonly is: "failed"; readonly id: number; readonly message: string }
  | { readonly is: "checked"; readonly id: number; readonly decision: Decision; readonly addresses: readonly string[] }
  | ({ readonly is: "resolve"; readonly id: number } & AskedValue)
  /** Values that were used again without `resolve`, in batches. */
  | { readonly is: "used"; readonly uses: readonly (AskedValue & { readonly count: number })[] }
  /** Batches, at most one per second; `suppressed` were over the limit of that sandbox. */
  | {
      readonly is: "decisions";
      readonly sandboxId: string;
      readonly entries: readonly NetworkLogEntry[];
      readonly suppressed: number;
    };
