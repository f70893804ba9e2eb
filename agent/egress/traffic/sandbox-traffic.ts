/** A sandbox in the egress process: its policy, its open connections, its recent questions. */

import type { Socket } from "node:net";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { bucket } from "../../../shared/program/bucket.ts";
import { decisionBatches, type Noted, type SayDecisions } from "../channel/decisions.ts";
import type { PlaceholderAnswer, SandboxEgress } from "../channel/messages.ts";
import type { AskedName, Asker } from "../dns/policy.ts";
import { typeName } from "../dns/question.ts";
import { openQuestionLog } from "../dns/question-log.ts";
import type { Shares } from "../limits/shares.ts";
import { type Arrive, type Flow, type FlowDeps, startFlow } from "./flow.ts";

/** Limits of DNS questions: a burst, and the rate at which the burst refills. */
const QUESTIONS_AT_ONCE = 400;
const QUESTIONS_A_SECOND = 200;

const DNS_PORT = 53;
const NO_BYTES = { sentBytes: 0, receivedBytes: 0 };

export interface SandboxTrafficDeps extends FlowDeps {
  /** Counts connections by the sandbox's address. */
  readonly shares: Shares;
  readonly say: SayDecisions;
  readonly resolve: (placeholder: string, host: string) => Promise<PlaceholderAnswer>;
}

export interface SandboxTraffic extends Asker {
  readonly executionId: string;
  /** In force when this returns; flows that may not continue as they are get cut. */
  replace(policy: EgressPolicy): void;
  /** @param arrive how the connection says where it wants to go; by its own destination unless it is given */
  take(socket: Socket, arrive?: Arrive): void;
  /** Ends all flows and sends the collected decisions. */
  end(): void;
}

export function openSandboxTraffic(
  { address, executionId, policy: first }: SandboxEgress,
  deps: SandboxTrafficDeps,
): SandboxTraffic {
  const flows = new Set<Flow>();
  const decisions = decisionBatches(deps.say);
  const questionLog = openQuestionLog(deps.say);
  const questions = bucket(QUESTIONS_AT_ONCE, QUESTIONS_A_SECOND);
  const state = { policy: first };
  const note = (entry: Noted) => decisions.note(entry);
  const noteQuestion = (asked: AskedName | undefined, verdict: Noted["verdict"], rule: string) =>
    questionLog.note({
      protocol: "dns",
      address: "",
      port: DNS_PORT,
      ...(asked === undefined || asked.name === "" ? {} : { name: asked.name }),
      ...(asked === undefined ? {} : { recordType: typeName(asked.type) }),
      verdict,
      rule,
      ...NO_BYTES,
    });

  return {
    executionId,
    get policy() {
      return state.policy;
    },
    replace(policy) {
      state.policy = policy;
      for (const flow of flows) flow.recheck();
    },
    take(socket, arrive) {
      if (!deps.shares.enter(address)) {
        const to = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
        note({ protocol: "tcp", ...to, verdict: "deny", rule: "limit connections", ...NO_BYTES });
        socket.resetAndDestroy();
        return;
      }
      const flow = startFlow(socket, { policy: () => state.policy, note, resolve: deps.resolve }, deps, arrive);
      flows.add(flow);
      void flow.closed.then(() => {
        flows.delete(flow);
        deps.shares.leave(address);
      });
    },
    mayAsk() {
      if (questions.take()) return true;
      noteQuestion(undefined, "deny", "limit questions");
      return false;
    },
    tooMany: () => noteQuestion(undefined, "deny", "limit questions"),
    refused: (asked, rule) => noteQuestion(asked, "deny", rule),
    failed: (asked, reason) => noteQuestion(asked, "allow", `failed ${reason}`),
    end() {
      for (const flow of flows) flow.cut();
      decisions.flush();
      questionLog.flush();
    },
  };
}
