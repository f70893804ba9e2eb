/** Finds the real destination of a flow: the decision, with the addresses to dial. `check` uses it too. */

import { allowedByName, type ConnectionRequest, type Decision, decide } from "../../../shared/policy/decide.ts";
import type { EgressPolicy, EgressProxy } from "../../../shared/policy/egress-policy.ts";
import type { CompanyProxy } from "../channel/messages.ts";
import type { NoAnswer } from "../dns/ask.ts";
import type { Names } from "../dns/names.ts";
import { CODE, codeName } from "../dns/question.ts";
import { ConnectError } from "./connect-error.ts";

export type Target =
  | { readonly is: "direct"; readonly addresses: readonly string[] }
  /** `host`: a name where the proxy resolves it, else an address. */
  | { readonly is: "proxied"; readonly proxy: EgressProxy; readonly host: string }
  /** Through the operator's proxy. `addresses`: those of the name as the node knows them, all allowed; maybe none. */
  | {
      readonly is: "company";
      readonly proxy: CompanyProxy;
      readonly host: string;
      readonly addresses: readonly string[];
    }
  | { readonly is: "refused" };

export interface FoundTarget {
  readonly decision: Decision;
  readonly target: Target;
}

export interface TargetDeps {
  readonly names: Pick<Names, "addresses">;
  readonly isOwn: (address: string) => boolean;
}

/** Throws when a name that is to be dialled has no address. */
export async function findTarget(
  flow: ConnectionRequest,
  policy: EgressPolicy,
  deps: TargetDeps,
): Promise<FoundTarget> {
  const decision = decideHere(flow, policy, deps);
  if (decision.verdict === "deny") return refused(decision);
  const { proxy } = policy;
  if (decision.dial === "address" || flow.hostname === undefined) {
    return { decision, target: towards(proxy, [flow.address]) };
  }
  if (proxy !== undefined && mayBeAnywhere(flow, policy)) {
    return { decision, target: { is: "proxied", proxy, host: flow.hostname } };
  }
  const { addresses, ...answer } = await deps.names.addresses(flow.hostname);
  if (addresses.length === 0) throw noAddress(answer);
  // Decides about the addresses that are dialled, because the name may resolve differently than a moment ago.
  const decided = addresses.map((address) => ({ address, decision: decideHere({ ...flow, address }, policy, deps) }));
  const permitted = decided.filter(({ decision }) => decision.verdict === "allow");
  if (permitted.length === 0) return refused(decided[0]?.decision ?? decision);
  return {
    decision,
    target: towards(
      proxy,
      permitted.map(({ address }) => address),
    ),
  };
}

/** For the log of decisions: why a name cannot be dialled. */
export function noAddress({ code, noAnswer }: { readonly code: number; readonly noAnswer?: NoAnswer }): Error {
  const why = noAnswer ?? (code === CODE.ok ? undefined : codeName(code));
  return new ConnectError(`the name has no address${why === undefined ? "" : `: ${why}`}`);
}

/** Whether any address of the name is allowed, so that the proxy may resolve it. */
export function mayBeAnywhere(flow: ConnectionRequest, policy: EgressPolicy): boolean {
  return allowedByName(flow, policy) || policy.denyRanges.length === 0;
}

/** Decides like `decide`, and denies the node's own addresses, which no policy can know. */
export function decideHere(
  flow: ConnectionRequest,
  policy: EgressPolicy,
  { isOwn }: Pick<TargetDeps, "isOwn">,
): Decision {
  const decision = decide(flow, policy);
  if (decision.verdict === "deny" || decision.via !== undefined || !isOwn(flow.address)) return decision;
  return { verdict: "deny", rule: "always node", reason: "the node itself is never reachable", dial: "address" };
}

function towards(proxy: EgressProxy | undefined, addresses: readonly string[]): Target {
  const [first] = addresses;
  if (first === undefined) return { is: "refused" };
  return proxy === undefined ? { is: "direct", addresses } : { is: "proxied", proxy, host: first };
}

function refused(decision: Decision): FoundTarget {
  return { decision, target: { is: "refused" } };
}
