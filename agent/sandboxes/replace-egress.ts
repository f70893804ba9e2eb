/**
 * Replaces the policy of a running sandbox in two parts. First the firewall and the egress process enforce it, without
 * the sandbox's help. Then its envd changes the certificates that its programs trust, which the sandbox can refuse.
 */

import type { EgressReplaced } from "../../shared/agent-api/routes.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Docker } from "../containers/host-docker.ts";
import type { Egress } from "../egress-supervisor/host-egress.ts";
import type { Gate } from "../network/gate.ts";
import type { Sandbox } from "./sandbox.ts";

const TRUST_LIMIT_MS = 5_000;

export interface ReplaceEgressDeps {
  readonly docker: Docker;
  readonly egress: Egress;
  readonly gate: Gate;
  readonly log: Log;
}

export interface ReplaceEgress {
  /** Rejects with the old policy in force, or, if that failed too, with the network closed; the error says which. */
  enforce(sandbox: Sandbox, to: EgressPolicy): Promise<void>;
  /** Called once the policy is in force. Never rejects: a sandbox that does not answer changes nothing about its policy. */
  trust(sandbox: Sandbox, to: EgressPolicy): Promise<EgressReplaced>;
}

export function createReplaceEgress({ docker, egress, gate, log }: ReplaceEgressDeps): ReplaceEgress {
  return {
    enforce: ({ executionId, sandboxId, container, egress: from }, to) =>
      gate.replace(container.slot, { executionId, sandboxId }, { from, to }),

    async trust({ executionId, container, egress: from }, to) {
      const [before, after] = [from.rules.length > 0, to.rules.length > 0];
      if (!before && !after) return { trust: "applied" };
      const { slot, controlToken } = container;
      try {
        // Sends the certificate also when the old policy had rules, because the last attempt may have failed.
        const pem = await egress.caFor(to);
        await docker.envd.trust({ address: slot.address, controlToken }, pem, AbortSignal.timeout(TRUST_LIMIT_MS));
        return { trust: "applied" };
      } catch (error) {
        log.warn(
          { err: error, executionId },
          "the policy is in force, but the sandbox did not change the authorities that it trusts",
        );
        // A leftover certificate does no harm: without rules no host's certificate is signed by the node.
        return { trust: after ? "not applied" : "applied" };
      }
    },
  };
}
