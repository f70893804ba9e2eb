/** The firewall of the machine in memory: a policy by link. */

import type { Firewall } from "../../agent/network/firewall.ts";
import type { SlotPolicy } from "../../agent/network/firewall-rules.ts";

export function fakeFirewall(step: (name: string) => Promise<void>, rules: Map<string, SlotPolicy>): Firewall {
  return {
    async rebuild(given) {
      await step("rebuild");
      rules.clear();
      for (const slot of given) rules.set(slot.link, slot);
    },
    async pin({ link, address }) {
      await step("pin");
      rules.set(link, { link, address, open: false });
    },
    async open({ link, address }) {
      await step("open");
      if (!rules.has(link)) throw new Error("opened before it was pinned");
      rules.set(link, { link, address, open: true });
    },
    async close({ link, address }) {
      await step("close");
      rules.set(link, { link, address, open: false });
    },
    async forget({ link }) {
      await step("forget");
      rules.delete(link);
    },
    repair: () => Promise.resolve(false),
    stop: () => undefined,
  };
}
