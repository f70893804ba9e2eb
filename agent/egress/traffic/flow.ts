/** One connection of a sandbox: its name, its decision, its path; decided again whenever the policy changes, and cut when the new one forbids it. */

import type { Socket } from "node:net";
import { defined } from "../../../shared/defined.ts";
import type { ConnectionRequest, Decision } from "../../../shared/policy/decide.ts";
import { type EgressPolicy, needsEgressProcess } from "../../../shared/policy/egress-policy.ts";
import { addressNumber } from "../../../shared/policy/ranges.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Bytes, Carried, Transform, TransformOptions } from "../carry/carried.ts";
import type { LargeBuffers } from "../carry/intake.ts";
import { relay } from "../carry/relay.ts";
import type { Noted } from "../channel/decisions.ts";
import type { CompanyProxy, PlaceholderAnswer } from "../channel/messages.ts";
import { type Arrival, redirected } from "../company/arrival.ts";
import { type DialDeps, dial } from "../connect/dial.ts";
import { decideHere, mayBeAnywhere, type Target } from "../destinations/target.ts";

/** A connection that is open for this long is logged before its end, with its bytes so far. */
const NOTED_AFTER_MS = 2_000;
/** One error for all flows, because each flow ends with it and an error with a stack is expensive. */
const CUT = new Error("cut");

/** Reads where the connection wants to go; undefined when it ended before that. */
export type Arrive = (socket: Socket, policy: EgressPolicy) => Promise<Arrival | undefined>;

export interface FlowDeps extends DialDeps {
  readonly transform: Transform;
  readonly authority: TransformOptions["authority"];
  readonly trust: () => TransformOptions["trust"];
  readonly buffers: LargeBuffers;
  readonly log: Log;
}

/** The sandbox that the connection is from. */
export interface FlowOwner {
  /** The policy now in force. */
  policy(): EgressPolicy;
  note(entry: Noted): void;
  readonly resolve: (placeholder: string, host: string) => Promise<PlaceholderAnswer>;
}

export interface Flow {
  /** Ends the flow unless the policy in force allows it in exactly the same way. */
  recheck(): void;
  cut(): void;
  readonly closed: Promise<void>;
}

interface DecidedFlow {
  readonly request: ConnectionRequest;
  readonly policy: EgressPolicy;
  readonly decision: Decision;
  readonly target: Target;
}

/** `socket` is paused, and connected as the sandbox intended. */
export function startFlow(socket: Socket, owner: FlowOwner, deps: FlowDeps, arrive: Arrive = redirected): Flow {
  const stopping = new AbortController();
  let decided: DecidedFlow | undefined;
  let carried: Carried | undefined;
  let accepted: true | undefined;

  const cut = () => {
    stopping.abort(CUT);
    carried?.destroy();
    if (!socket.destroyed) socket.resetAndDestroy();
  };

  const decide = async (arrival: Arrival): Promise<DecidedFlow> => {
    for (;;) {
      const policy = owner.policy();
      const found = await arrival.find(policy, deps);
      // The policy may have changed while the name was resolved.
      if (policy === owner.policy()) return { policy, ...found };
    }
  };

  const run = async () => {
    const arrival = await arrive(socket, owner.policy());
    if (arrival === undefined || stopping.signal.aborted) return;
    const { address, port, hostname } = arrival;
    const note = noter(owner, { address, port, ...defined({ name: hostname }) });
    try {
      decided = await decide(arrival);
      if (stopping.signal.aborted) return;
      const { decision, target } = decided;
      if (decision.verdict === "deny" || target.is === "refused") {
        note("deny", decision.rule);
        return await arrival.refuse?.(
          403,
          `the policy of this sandbox forbids it (${decision.rule}): ${decision.reason}`,
        );
      }
      carried = await carry(decided, arrival);
      if (stopping.signal.aborted) carried.destroy();
      const { closed } = carried;
      const timer = setTimeout(() => {
        note("allow", decided?.decision.rule ?? "", { sent: socket.bytesRead, received: socket.bytesWritten });
      }, NOTED_AFTER_MS);
      const ended = await closed;
      clearTimeout(timer);
      note("allow", ended.failed === undefined ? decided.decision.rule : `failed ${ended.failed}`, ended);
    } catch (error) {
      if (stopping.signal.aborted) return;
      note("allow", `failed ${reason(error)}`);
      // After `accept` the client takes every byte for the destination's.
      if (carried === undefined && accepted === undefined) await arrival.refuse?.(502, reason(error));
    }
  };

  const carry = async (decided: DecidedFlow, { first, plain, accept }: Arrival): Promise<Carried> => {
    const { request, decision, target, policy } = decided;
    const { port } = request;
    const toProxy = plain && target.is === "company" ? { proxied: authorizationOf(target.proxy) } : {};
    const { signal } = stopping;
    const { buffers } = deps;
    const rule = policy.rules.find(({ host }) => host === decision.transform);
    // Allowed by name, plain HTTP is read request by request: a later request may be for another host.
    const byRequest = plain || rule !== undefined || (decision.dial === "hostname" && port === 80);
    const { hostname } = request;
    if (hostname !== undefined && byRequest) {
      const tls = !plain && port === 443;
      accept();
      accepted = true;
      return deps.transform(socket, {
        hostname,
        port,
        headers: rule?.headers ?? {},
        // The operator's proxy sees every request in clear, so it must never carry a value.
        allowPlainHttp: rule?.allowPlainHttp === true && target.is !== "company",
        tls,
        ...toProxy,
        once: plain,
        first,
        connect: () => dial(target, { port, signal, plain, ...(tls ? {} : { buffers }) }, deps),
        resolve: (placeholder) => owner.resolve(placeholder, hostname),
        authority: deps.authority,
        trust: deps.trust(),
      });
    }
    if (plain) throw new Error("plain HTTP to an address needs CONNECT");
    const upstream = await dial(target, { port, signal, buffers }, deps);
    accept();
    accepted = true;
    return relay(socket, upstream, first);
  };

  const closed = run()
    .catch((error: unknown) => deps.log.error({ err: error }, "a connection failed by an internal error"))
    .then(cut);

  return {
    cut,
    closed,
    recheck() {
      // Without redirection its packets leave directly from now on, where nothing knows the connection.
      if (arrive === redirected && !needsEgressProcess(owner.policy())) return cut();
      if (decided !== undefined && !goesOn(decided, owner.policy(), deps)) cut();
    },
  };
}

/** Whether the flow would be allowed and carried in the same way to the same place. */
function goesOn(
  { request, policy: before, decision, target }: DecidedFlow,
  policy: EgressPolicy,
  deps: FlowDeps,
): boolean {
  const next = decideHere(request, policy, deps);
  if (next.verdict === "deny") return false;
  if (next.dial !== decision.dial || next.via !== decision.via || next.transform !== decision.transform) return false;
  if (!same(before.proxy, policy.proxy)) return false;
  const rule = ({ rules }: EgressPolicy) => rules.find(({ host }) => host === next.transform);
  if (!same(rule(before), rule(policy))) return false;
  const allows = (address: string) => decideHere({ ...request, address }, policy, deps).verdict === "allow";
  if (target.is === "direct") return target.addresses.every(allows);
  if (target.is === "company")
    return target.addresses.length === 0 ? mayBeAnywhere(request, policy) : target.addresses.every(allows);
  if (target.is === "refused") return false;
  return addressNumber(target.host) === undefined ? mayBeAnywhere(request, policy) : allows(target.host);
}

function authorizationOf({ authorization }: CompanyProxy): { readonly authorization?: string } {
  return authorization === undefined ? {} : { authorization };
}

function same(a: object | undefined, b: object | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Logs the flow once, with the facts that are known at that moment. */
function noter(owner: FlowOwner, about: Pick<Noted, "address" | "port" | "name">) {
  const at = Date.now();
  let noted = false;
  return (verdict: Noted["verdict"], rule: string, bytes: Bytes = { sent: 0, received: 0 }) => {
    if (noted) return;
    noted = true;
    owner.note({ at, protocol: "tcp", ...about, verdict, rule, sentBytes: bytes.sent, receivedBytes: bytes.received });
  };
}

function reason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string") return code;
  return error instanceof Error ? error.message : "unknown";
}
