/** A sandbox in the egress process: its policy, its open connections, its recent questions. */

import type { Socket } from "node:net";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { decisionBatches, type Noted, type SayDecisions } from "./decisions.ts";
import type { Asker } from "./dns/policy.ts";
import { type Flow, type FlowDeps, startFlow } from "./flow.ts";
import type { SandboxEgress } from "./messages.ts";
import type { Shares } from "./shares.ts";

/** Limits of DNS questions: a burst, and the rate at which the burst refills. */
const QUESTIONS_AT_ONCE = 400;
const QUESTIONS_A_SECOND = 200;

export interface SandboxTrafficDeps extends FlowDeps {
  /** Counts connections by the sandbox's address. */
  readonly shares: Shares;
  readonly say: SayDecisions;
  readonly resolve: (placeholder: string) => Promise<string | undefined>;
}

export interface SandboxTraffic extends Asker {
  readonly executionId: string;
  /** In force when this returns; flows that may not continue as they are get cut. */
  replace(policy: EgressPolicy): void;
  take(socket: Socket): void;
  /** Ends all flows and sends the collected decisions. */
  end(): void;
}

export function openSandboxTraffic(
  { address, executionId, policy: first }: SandboxEgress,
  deps: SandboxTrafficDeps,
): SandboxTraffic {
  const flows = new Set<Flow>();
  const decisions = decisionBatches(deps.say);
  const questions = bucket(QUESTIONS_AT_ONCE, QUESTIONS_A_SECOND);
  const state = { policy: first };
  const note = (entry: Noted) => decisions.note(entry);

  return {
    executionId,
    get policy() {
      return state.policy;
    },
    replace(policy) {
      state.policy = policy;
      for (const flow of flows) flow.recheck();
    },
    take(socket) {
      if (!deps.shares.enter(address)) {
        note(refusal("tcp", { address: socket.localAddress ?? "", port: socket.localPort ?? 0 }, "limit connections"));
        socket.resetAndDestroy();
        return;
      }
      const flow = startFlow(socket, { policy: () => state.policy, note, resolve: deps.resolve }, deps);
      flows.add(flow);
      void flow.closed.then(() => {
        flows.delete(flow);
        deps.shares.leave(address);
      });
    },
    mayAsk() {
      if (questions.take()) return true;
      note(refusal("dns", { address: "", port: 53 }, "limit questions"));
      return false;
    },
    refused(name, rule) {
      note(refusal("dns", { address: "", port: 53, ...(name === "" ? {} : { name }) }, rule));
    },
    end() {
      for (const flow of flows) flow.cut();
      decisions.flush();
    },
  };
}

function refusal(protocol: "tcp" | "dns", about: Pick<Noted, "address" | "port" | "name">, rule: string): Noted {
  return { protocol, ...about, verdict: "deny", rule, sentBytes: 0, receivedBytes: 0 };
}

function bucket(size: number, perSecond: number, now = Date.now) {
  const state = { left: size, at: now() };
  return {
    take(): boolean {
      const at = now();
      state.left = Math.min(size, state.left + ((at - state.at) / 1_000) * perSecond);
      state.at = at;
      if (state.left < 1) return false;
      state.left -= 1;
      return true;
    },
  };
}
