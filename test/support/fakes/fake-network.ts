/** The kernel's and the egress process's parts of the machine in memory. */

import type { SandboxEgress } from "../../../agent/egress/channel/messages.ts";
import type { EgressProcess, EgressTask } from "../../../agent/egress-supervisor/process.ts";
import type { Firewall } from "../../../agent/network/firewall.ts";
import type { SlotPolicy } from "../../../agent/network/firewall-rules.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { type EgressPolicy, kernelPolicy } from "../../../shared/policy/egress-policy.ts";

export function fakeNetwork(step: (name: string) => Promise<void>) {
  const rules = new Map<string, SlotPolicy>();
  const told = new Map<string, SandboxEgress>();
  const kept = (link: string, address: string, policy: EgressPolicy | undefined): SlotPolicy => ({
    link,
    address,
    open: policy !== undefined,
    ...(policy === undefined ? {} : { policy: kernelPolicy(policy) }),
  });
  const firewall: Firewall = {
    async rebuild(given) {
      await step("rebuild");
      rules.clear();
      for (const { link, address, policy } of given) rules.set(link, kept(link, address, policy));
    },
    async pin({ link, address }) {
      await step("pin");
      rules.set(link, { link, address, open: false });
    },
    async open({ link, address }, policy) {
      await step("open");
      if (!rules.has(link)) throw new Error("opened before it was pinned");
      if (!told.has(address)) throw new Error("opened before the egress process had the policy");
      rules.set(link, kept(link, address, policy));
    },
    async close({ link, address }) {
      await step("close");
      rules.set(link, { link, address, open: false });
    },
    async forget({ link }) {
      await step("forget");
      rules.delete(link);
    },
    repair: () => Promise.resolve([]),
    decisions: () => Promise.resolve({ flows: [], unlogged: new Map() }),
    watch: () => undefined,
    stop: () => undefined,
  };
  const egressProcess: EgressProcess = {
    ready: Promise.resolve(),
    async set(sandbox) {
      told.set(sandbox.address, sandbox);
      await step("set");
    },
    forget: (address) => void told.delete(address),
    check: () => Promise.reject(new AppError("unavailable", "the egress process is down")),
    problem: undefined,
    stop: () => Promise.resolve(),
  };

  const startEgress = ({ sandboxes }: EgressTask): EgressProcess => {
    told.clear();
    for (const sandbox of sandboxes) told.set(sandbox.address, sandbox);
    return egressProcess;
  };
  return { rules, told, firewall, egressProcess, startEgress };
}
