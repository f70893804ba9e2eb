/** Another policy for a running sandbox: what it trusts follows the rules that the policy has. */

import { AppError } from "../shared/errors.ts";
import type { Log } from "../shared/log.ts";
import type { EgressPolicy } from "../shared/policy/egress-policy.ts";
import type { CaFor, Envd } from "./envd.ts";
import type { Gate } from "./network/gate.ts";
import type { Sandbox } from "./sandboxes.ts";

const TRUST_LIMIT_MS = 5_000;

export interface ReplaceEgressDeps {
  readonly gate: Pick<Gate, "replace">;
  readonly envd: Pick<Envd, "trust">;
  readonly caFor: CaFor;
  readonly log: Log;
}

export type ReplaceEgress = (sandbox: Sandbox, to: EgressPolicy) => Promise<void>;

/** Rejects with the old policy in force, or, when even that failed, with the sandbox closed; the error says which. */
export function createReplaceEgress({ gate, envd, caFor, log }: ReplaceEgressDeps): ReplaceEgress {
  return async ({ executionId, sandboxId, container, egress: from }, to) => {
    const { slot, controlToken } = container;
    const trust = (pem: string) =>
      envd.trust({ address: slot.address, controlToken }, pem, AbortSignal.timeout(TRUST_LIMIT_MS));
    const distrust = () =>
      trust("").catch((error: unknown) => log.warn({ err: error, executionId }, "a certificate stays trusted"));
    const [before, after] = [from.rules.length > 0, to.rules.length > 0];
    // The first request to a host with a rule must not meet a certificate that nobody in there knows.
    if (after && !before) {
      await trust(await caFor(to)).catch((cause: unknown) => {
        throw new AppError("unavailable", "the policy was not replaced: the sandbox does not answer", { cause });
      });
    }
    try {
      await gate.replace(slot, { executionId, sandboxId }, { from, to });
    } catch (error) {
      if (after && !before) await distrust();
      throw error;
    }
    if (before && !after) await distrust();
  };
}
