/** One connection of a sandbox: its name, its decision, its path; decided again whenever the policy changes. */

import type { Socket } from "node:net";
import type { ConnectionRequest, Decision } from "../../shared/policy/decide.ts";
import { type EgressPolicy, needsEgressProcess } from "../../shared/policy/egress-policy.ts";
import { addressNumber } from "../../shared/policy/ranges.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Bytes, Carried, Transform, TransformOptions } from "./carried.ts";
import { type DialDeps, dial } from "./connect/dial.ts";
import type { Noted } from "./decisions.ts";
import type { LargeBuffers } from "./intake.ts";
import { relay } from "./relay.ts";
import { manner, sniff } from "./sniff/sniff.ts";
import { decideHere, findTarget, mayBeAnywhere, type Target } from "./target.ts";

/** A connection that is open for this long is logged before its end, with its bytes so far. */
const NOTED_AFTER_MS = 2_000;
/** One error for all flows, because each flow ends with it and an error with a stack is expensive. */
const CUT = new Error("cut");

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
  readonly resolve: (placeholder: string) => Promise<string | undefined>;
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

/** `socket` is paused, and connected as the sandbox intended: its local address is the destination. */
export function startFlow(socket: Socket, owner: FlowOwner, deps: FlowDeps): Flow {
  const stopping = new AbortController();
  const to = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
  let decided: DecidedFlow | undefined;
  let carried: Carried | undefined;

  const cut = () => {
    stopping.abort(CUT);
    carried?.destroy();
    if (!socket.destroyed) socket.resetAndDestroy();
  };

  const decide = async (hostname: string | undefined): Promise<DecidedFlow> => {
    const request: ConnectionRequest = { ...to, protocol: "tcp", ...(hostname === undefined ? {} : { hostname }) };
    for (;;) {
      const policy = owner.policy();
      const found = await findTarget(request, policy, deps);
      // The policy may have changed while the name was resolved.
      if (policy === owner.policy()) return { request, policy, ...found };
    }
  };

  const run = async () => {
    const how = manner(to.port, owner.policy());
    const sniffed = how === undefined ? { first: Buffer.alloc(0) } : await sniff(socket, how);
    if (sniffed === undefined || stopping.signal.aborted) return;
    const note = noter(owner, { ...to, ...("hostname" in sniffed ? { name: sniffed.hostname } : {}) });
    try {
      decided = await decide("hostname" in sniffed ? sniffed.hostname : undefined);
      if (stopping.signal.aborted) return;
      if (decided.decision.verdict === "deny" || decided.target.is === "refused")
        return note("deny", decided.decision.rule);
      carried = await carry(decided, sniffed.first);
      if (stopping.signal.aborted) carried.destroy();
      const { closed } = carried;
      const timer = setTimeout(() => {
        note("allow", decided?.decision.rule ?? "", { sent: socket.bytesRead, received: socket.bytesWritten });
      }, NOTED_AFTER_MS);
      const ended = await closed;
      clearTimeout(timer);
      note("allow", ended.failed === undefined ? decided.decision.rule : `failed ${ended.failed}`, ended);
    } catch (error) {
      if (!stopping.signal.aborted) note("allow", `failed ${reason(error)}`);
    }
  };

  const carry = async (decided: DecidedFlow, first: Buffer): Promise<Carried> => {
    const { request, decision, target, policy } = decided;
    const { signal } = stopping;
    const { buffers } = deps;
    const rule = policy.rules.find(({ host }) => host === decision.transform);
    // Allowed by name, plain HTTP is read request by request: a later request may be for another host.
    if (request.hostname !== undefined && (rule !== undefined || (decision.dial === "hostname" && to.port === 80))) {
      return deps.transform(socket, {
        hostname: request.hostname,
        port: to.port,
        headers: rule?.headers ?? {},
        tls: to.port === 443,
        first,
        connect: () => dial(target, { port: to.port, signal, ...(to.port === 443 ? {} : { buffers }) }, deps),
        resolve: owner.resolve,
        authority: deps.authority,
        trust: deps.trust(),
      });
    }
    return relay(socket, await dial(target, { port: to.port, signal, buffers }, deps), first);
  };

  const closed = run()
    .catch((error: unknown) => deps.log.error({ err: error }, "a connection failed by an internal error"))
    .then(cut);

  return {
    cut,
    closed,
    recheck() {
      // Without steering its packets leave directly from now on, where nothing knows the connection.
      if (!needsEgressProcess(owner.policy())) return cut();
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
  const headers = ({ rules }: EgressPolicy) => rules.find(({ host }) => host === next.transform)?.headers;
  if (!same(headers(before), headers(policy))) return false;
  const allows = (address: string) => decideHere({ ...request, address }, policy, deps).verdict === "allow";
  if (target.is === "direct") return target.addresses.every(allows);
  if (target.is === "refused") return false;
  return addressNumber(target.host) === undefined ? mayBeAnywhere(request, policy) : allows(target.host);
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
