/**
 * The node's firewall: what each slot may do, kept in the kernel and repaired when somebody else flushed it.
 * Nothing is in the kernel that is not also here, so the whole table can be rebuilt at any time.
 */

import type { RunCommand } from "../command.ts";
import type { Plan, Slot } from "./addresses.ts";
import { closeCommand, forgetCommand, openCommand, pinCommand, type SlotPolicy, tableText } from "./firewall-rules.ts";
import { nftShell } from "./nft-shell.ts";

export interface Firewall {
  /** Replaces the whole table; slots not named are denied everything. */
  rebuild(slots: readonly SlotPolicy[]): Promise<void>;
  /** From now on the slot's own address is known. It may still not speak to anybody. */
  pin(slot: Slot): Promise<void>;
  open(slot: Slot): Promise<void>;
  close(slot: Slot): Promise<void>;
  forget(slot: Slot): Promise<void>;
  /** True when something was missing and has been put back. */
  repair(): Promise<boolean>;
  stop(): void;
}

export function hostFirewall(plan: Plan, run: RunCommand): Firewall {
  const slots = new Map<string, SlotPolicy>();
  const expected = { chains: "" };
  const shell = nftShell(
    `list set inet ${plan.network} empty`,
    // Some builds of nft show a prompt even to a pipe.
    new RegExp(`table inet ${plan.network} \\{\\s+set empty \\{[^{}]*\\}\\s*\\}\\s*(nft> ?)*$`),
  );

  // In line with the changes, so that none is overwritten by a table that was written down before it.
  const rebuild = () =>
    shell.inLine(async () => {
      await run("nft", ["-f", "-"], { input: tableText(plan, slots.values()) });
      await allowInDocker(plan, run);
      expected.chains = parseTable(await run("nft", ["list", "table", "inet", plan.network])).chains;
    });

  const change = async (command: string) => {
    try {
      await shell.run(command);
    } catch {
      // Flushed by another tool, or the shell died: the table as it should be includes this change.
      await rebuild();
    }
  };

  return {
    async rebuild(given) {
      slots.clear();
      for (const slot of given) slots.set(slot.link, slot);
      await rebuild();
    },
    async pin({ link, address }) {
      const slot = { link, address, open: false };
      slots.set(link, slot);
      await change(pinCommand(plan, slot));
    },
    async open({ link, address }) {
      const slot = { link, address, open: true };
      slots.set(link, slot);
      await change(openCommand(plan, slot));
    },
    async close({ link, address }) {
      const slot = { link, address, open: false };
      slots.set(link, slot);
      await change(closeCommand(plan, slot));
    },
    async forget({ link }) {
      const slot = slots.get(link);
      if (slot === undefined) return;
      slots.delete(link);
      await change(forgetCommand(plan, slot));
    },
    async repair() {
      // What is in `slots` now has been asked for already, so the answer to this must show it.
      const links = [...slots.keys()];
      // A process of its own: the shell might remember a table that is no longer there.
      const table = await shell.inLine(() => run("nft", ["list", "table", "inet", plan.network]).catch(() => ""));
      await allowInDocker(plan, run);
      const { chains, pinned } = parseTable(table);
      const same = chains === expected.chains && links.every((link) => pinned.has(link) || !slots.has(link));
      if (same) return false;
      await rebuild();
      return true;
    },
    stop: () => shell.stop(),
  };
}

/** The text of all chains, and the links that are pinned. */
function parseTable(text: string): { chains: string; pinned: ReadonlySet<string> } {
  // Sets come first; of those only `pinned` has pairs.
  const start = text.indexOf("\tchain ");
  const pinned = [...text.slice(0, start).matchAll(/"([^"]+)" \. /g)].map((match) => match[1] ?? "");
  return { chains: text.slice(start), pinned: new Set(pinned) };
}

/**
 * Docker's own filter drops what it does not know, in a chain that an accept of ours cannot overrule; DOCKER-USER is
 * the place it leaves to others. On a host without that chain nothing is needed.
 */
async function allowInDocker(plan: Plan, run: RunCommand): Promise<void> {
  const rules = await run("iptables", ["-w", "5", "-S", "DOCKER-USER"]).catch(() => undefined);
  if (rules === undefined) return;
  for (const rule of dockerRules(plan)) {
    if (!rules.split("\n").includes(`-A DOCKER-USER ${rule}`)) {
      await run("iptables", ["-w", "5", "-I", "DOCKER-USER", ...rule.split(" ")]);
    }
  }
}

/** As `iptables -S` prints them. */
function dockerRules(plan: Plan): readonly string[] {
  const links = `${plan.network}-+`;
  return [`-o ${links} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`, `-i ${links} -j ACCEPT`];
}
