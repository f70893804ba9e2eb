/**
 * Opens and closes a sandbox's network: updates the kernel and the egress process in an order in which nothing passes
 * that the policy forbids.
 */

import { AppError } from "../../shared/http/errors.ts";
import { type EgressPolicy, needsEgressProcess } from "../../shared/policy/egress-policy.ts";
import type { Log } from "../../shared/program/log.ts";
import type { SandboxEgress } from "../egress/channel/messages.ts";
import type { EgressProcess } from "../egress-supervisor/process.ts";
import type { Values } from "../placeholders/values.ts";
import type { Slot } from "./addresses.ts";
import type { Firewall } from "./firewall.ts";

interface Guest {
  readonly executionId: string;
  readonly sandboxId: string;
}

export interface Gate {
  /** The present or last owner of the address, because the agent reads the kernel's log a little later. */
  lastAt(address: string): SandboxEgress | undefined;
  /** The policy is in force when this resolves. While the egress process is down, its share of the policy is refused. */
  open(slot: Slot, guest: Guest, policy: EgressPolicy): Promise<void>;
  /** Denies all traffic and forgets nothing: `open` continues with the same policy. */
  hold(slot: Slot): Promise<void>;
  /** Ends the flows for good. */
  close(slot: Slot): Promise<void>;
  /**
   * Replaces one policy by another, as a whole or not at all; flows that the new one forbids are cut when it resolves. When
   * neither can be put in force, the network stays closed, and the error names that.
   */
  replace(
    slot: Slot,
    guest: Guest,
    policies: { readonly from: EgressPolicy; readonly to: EgressPolicy },
  ): Promise<void>;
}

export interface GateDeps {
  readonly firewall: Pick<Firewall, "open" | "close">;
  readonly egress: Pick<EgressProcess, "set" | "forget" | "problem">;
  /** Values of placeholders are there while a policy that names them is in force, and dropped before it ends. */
  readonly values: Pick<Values, "begin" | "end">;
  /** The sandboxes that the firewall was rebuilt with. */
  readonly guests: readonly SandboxEgress[];
  readonly log: Log;
}

export function createGate({ firewall, egress, values, guests, log }: GateDeps): Gate {
  const inside = new Map<string, SandboxEgress>();
  const last = new Map<string, SandboxEgress>();
  const forget = (address: string) => {
    const owner = inside.get(address);
    if (owner !== undefined) values.end(owner.executionId);
  };
  const note = (sandbox: SandboxEgress): SandboxEgress => {
    const { address, executionId, policy } = sandbox;
    forget(address);
    values.begin(executionId, policy);
    inside.set(address, sandbox);
    last.set(address, sandbox);
    return sandbox;
  };
  for (const guest of guests) note(guest);

  const put = async (slot: Slot, guest: Guest, policy: EgressPolicy) => {
    await egress.set(note({ address: slot.address, ...guest, policy })).catch((error: unknown) => {
      // A dead process passes no flow, and its successor begins with this policy; one that refuses may still pass flows.
      if (egress.problem === undefined) throw error;
    });
    await firewall.open(slot, policy);
  };

  return {
    lastAt: (address) => last.get(address),
    async open(slot, guest, policy) {
      const accepted = egress.set(note({ address: slot.address, ...guest, policy })).catch((error: unknown) => {
        log.warn({ err: error, ...guest }, "the egress process is down; it gets the sandbox's policy at its restart");
      });
      // For other policies it only answers DNS questions, and the first question comes later than this message.
      if (needsEgressProcess(policy)) await accepted;
      await firewall.open(slot, policy);
    },
    hold(slot) {
      forget(slot.address);
      return firewall.close(slot);
    },
    async close(slot) {
      forget(slot.address);
      inside.delete(slot.address);
      egress.forget(slot.address);
      await firewall.close(slot);
    },
    async replace(slot, guest, { from, to }) {
      try {
        await firewall.close(slot);
        await put(slot, guest, to);
      } catch (error) {
        log.error({ err: error, ...guest }, "could not replace a policy, restoring the old one");
        try {
          await firewall.close(slot);
          await put(slot, guest, from);
        } catch (again) {
          log.error({ err: again, ...guest }, "could not restore the old policy: the sandbox's network stays closed");
          throw new AppError("unavailable", "neither policy could be put in force: the sandbox's network is closed", {
            cause: error,
          });
        }
        throw new AppError("unavailable", "the policy was not replaced, the old one is in force", { cause: error });
      }
    },
  };
}
