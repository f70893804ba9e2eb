/** Explains what would happen to a flow, with the code that decides real ones. */

import { defined } from "../../../shared/defined.ts";
import { type ConnectionRequest, type Decision, decideName } from "../../../shared/policy/decide.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";
import type { CheckFlow } from "../channel/messages.ts";
import { findTarget, mayBeAnywhere, type TargetDeps } from "./target.ts";

export interface Checked {
  readonly decision: Decision;
  readonly addresses: readonly string[];
}

/** Stands for the address that a sandbox uses for a name that only its proxy looks up. */
const ANY_ADDRESS = "192.0.2.1";

/** Shorter than the time after which the agent takes the process for stuck. */
const LIMIT_MS = 3_000;

/** Rejects for a meaningless question, or when names cannot be resolved in time. */
export function check(asked: CheckFlow["flow"], policy: EgressPolicy, deps: TargetDeps): Promise<Checked> {
  return withDeadline(explainAll(asked, policy, deps), LIMIT_MS, () => {
    throw new Error("the name was not looked up in time");
  });
}

async function explainAll(asked: CheckFlow["flow"], policy: EgressPolicy, deps: TargetDeps): Promise<Checked> {
  const { address, hostname: written, port, protocol } = asked;
  const hostname = written === undefined ? undefined : hostName(written);
  if (written !== undefined && hostname === undefined) throw new Error(`${written} is not a host name`);
  const flow = { port, protocol, ...defined({ hostname }) };
  if (address !== undefined) return explain({ ...flow, address }, policy, deps);
  if (hostname === undefined) throw new Error("neither a name nor an address");
  if (policy.proxy !== undefined && mayBeAnywhere({ ...flow, address: ANY_ADDRESS }, policy)) {
    const { decision } = await explain({ ...flow, address: ANY_ADDRESS }, policy, deps);
    if (decision.dial === "hostname") return { decision, addresses: [] };
  }
  const named = decideName(hostname, policy);
  if (named.verdict === "deny") return { decision: named, addresses: [] };
  const { addresses } = await deps.names.addresses(hostname);
  const explained = await Promise.all(addresses.map((address) => explain({ ...flow, address }, policy, deps)));
  // A program tries one address after the other.
  const decisive = explained.find(({ decision }) => decision.verdict === "allow") ?? explained[0];
  return { decision: decisive?.decision ?? NOWHERE, addresses };
}

const NOWHERE: Decision = { verdict: "deny", rule: "no address", reason: "the name has no address", dial: "address" };

async function explain(flow: ConnectionRequest, policy: EgressPolicy, deps: TargetDeps): Promise<Checked> {
  const { decision, target } = await findTarget(flow, policy, deps).catch(() => ({
    decision: NOWHERE,
    target: undefined,
  }));
  if (target === undefined || target.is === "refused") return { decision, addresses: [] };
  return { decision, addresses: target.is === "direct" ? target.addresses : [] };
}
