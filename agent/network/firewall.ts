/**
 * The node's firewall: keeps the rules of every slot in the kernel, and restores them when another program changed them.
 * This file knows all rules of the kernel's table, so it can rebuild the whole table at any time.
 */

import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { kernelPolicy } from "../../shared/policy/egress-policy.ts";
import { looking, type RunCommand } from "../host/command.ts";
import type { Plan, Slot } from "./addresses.ts";
import { changeCommand, LOG_SETS, type SlotPolicy, type TableOptions, tableText } from "./firewall-rules.ts";
import { keepForwarding } from "./kernel/forwarding.ts";
import { type KernelFlow, type LastRead, readFlows, readUnlogged } from "./kernel-flows.ts";
import { nftShell } from "./nft/nft-shell.ts";
import { type Changed, watchTable } from "./nft/table-watch.ts";
import { hostRouting } from "./routing.ts";
import { createTableRepair, lookAtTable } from "./table-repair.ts";

export interface Firewall {
  /** Replaces the whole table; slots not named are denied everything. */
  rebuild(slots: readonly OpenSlot[]): Promise<void>;
  /** Pins the slot's own address. The slot may still not send to anything. */
  pin(slot: Slot): Promise<void>;
  /** Puts the policy in force, in one transaction and also in place of another policy, before it resolves. */
  open(slot: Slot, policy: EgressPolicy): Promise<void>;
  /** Denies all traffic of the slot; its policy is kept for the next `open`, until `forget`. */
  close(slot: Slot): Promise<void>;
  forget(slot: Slot): Promise<void>;
  /** What was changed, at two looks in a row, and has been restored: `table`, `routing`, `DOCKER-USER`, `forwarding`. */
  repair(): Promise<readonly string[]>;
  /** Decisions of the kernel since the last call; `unlogged`: packets by source that were too many to log. */
  decisions(): Promise<{ readonly flows: readonly KernelFlow[]; readonly unlogged: ReadonlyMap<string, number> }>;
  /**
   * Calls back when another program may have changed the table, and when it has changed other rules of the host or its
   * forwarding, until `stop`.
   */
  watch(changed: Changed): void;
  stop(): void;
}

interface OpenSlot {
  readonly link: string;
  readonly address: string;
  /** Undefined: the slot is only pinned, and all its traffic is denied. */
  readonly policy: EgressPolicy | undefined;
}

export interface FirewallOptions extends Omit<TableOptions, "egressPort"> {
  readonly egressPort: () => Promise<number>;
  /** Path of `svc-table-watch`. */
  readonly watcher: () => Promise<string>;
  /** Called when nft could not list the table: the agent does not know then whether the table is whole. */
  readonly unread: (error: Error) => void;
}

/** Length above which a line runs in a separate `nft`: the interactive one reads lines, not files. */
const LONG_LINE = 16_384;

export function hostFirewall(plan: Plan, run: RunCommand, options: FirewallOptions): Firewall {
  const { egressPort, connections, proxy = false } = options;
  // Contents of the kernel's table; the queue of commands alone changes it.
  const slots = new Map<string, SlotPolicy>();
  const expected = { rules: "", slots };
  const state = { changes: 0 };
  const lastReads = new Map<string, LastRead>();
  const routing = hostRouting(plan, run);
  const shell = nftShell();
  const watcher = { stop: () => undefined as void };

  const look = looking(run);
  const listTable = (...how: string[]) => look("nft", [...how, "list", "table", "inet", plan.network]);

  // Queued like the changes, so that an older table does not overwrite a newer change.
  const putBack = async () => {
    // Links are opened afterwards: nft fills sets of ranges shortly after the rules of their transaction are in force.
    const closed = [...slots.values()].map((slot) => ({ ...slot, open: false }));
    await run("nft", ["-f", "-"], {
      input: tableText(plan, closed, { egressPort: await egressPort(), connections, proxy }),
    });
    const links = [...slots.values()].filter(({ open }) => open).map(({ link }) => `"${link}"`);
    if (links.length > 0) {
      await run("nft", ["-f", "-"], { input: `add element inet ${plan.network} open { ${links.join(", ")} }\n` });
    }
    expected.rules = await listTable("-s", "-t");
  };

  // Routing and Docker's chain are outside of the table, so this does not wait for changes of the table.
  const surround = async () => {
    const [routed, allowed, forwards] = await Promise.all([routing.keep(), allowInDocker(plan, run), keepForwarding()]);
    return [...(routed ? ["routing"] : []), ...(allowed ? ["DOCKER-USER"] : []), ...(forwards ? ["forwarding"] : [])];
  };

  const change = (link: string, next: (before: SlotPolicy | undefined) => SlotPolicy | undefined): Promise<void> =>
    shell.mutex(async (now) => {
      state.changes++;
      const before = slots.get(link);
      const after = next(before);
      if (after === undefined) slots.delete(link);
      else slots.set(link, after);
      // As in `putBack`: where there are ranges, the link opens once they are in force.
      const opens = after?.open === true && before?.open !== true && isListed(after);
      const closed = opens ? { ...after, open: false } : after;
      const steps = [changeCommand(plan, before, closed), opens ? changeCommand(plan, closed, after) : undefined];
      try {
        for (const command of steps) {
          if (command === undefined) continue;
          if (command.length < LONG_LINE) await now(command);
          else await run("nft", ["-f", "-"], { input: `${command.replaceAll("; ", "\n")}\n` });
        }
      } catch {
        // Another tool flushed the table, or nft died: the rebuilt table includes this change.
        await putBack();
      }
    });

  const repairTable = createTableRepair({
    look: () => lookAtTable(listTable, expected),
    changes: () => state.changes,
    alone: (work) => shell.mutex(work),
    putBack,
    unread: options.unread,
  });

  return {
    async rebuild(given) {
      await surround();
      await shell.mutex(async () => {
        slots.clear();
        for (const { link, address, policy } of given) {
          slots.set(link, policy === undefined ? { link, address, open: false } : opened({ link, address }, policy));
        }
        await putBack();
      });
    },
    pin: ({ link, address }) => change(link, () => ({ link, address, open: false })),
    open: (slot, policy) => change(slot.link, (before) => opened(slot, policy, before)),
    close: ({ link, address }) => change(link, (before) => ({ ...before, link, address, open: false })),
    forget: ({ link }) => change(link, () => undefined),
    async repair() {
      const touched = await repairTable();
      return [...(touched ? ["table"] : []), ...(await surround())];
    },
    decisions: () =>
      shell.mutex(async (now) => {
        const texts: string[] = [];
        for (const name of LOG_SETS) texts.push(await now(`list set inet ${plan.network} ${name}`));
        const unlogged = readUnlogged(await now(`list set inet ${plan.network} unlogged`), lastReads);
        return {
          flows: readFlows(
            LOG_SETS.map((set, i) => [set, texts[i] ?? ""] as const),
            lastReads,
          ),
          unlogged,
        };
      }),
    watch(changed) {
      watcher.stop = watchTable(
        { network: plan.network, program: options.watcher, isOwn: (pid) => shell.isOwn(pid) },
        changed,
      );
    },
    stop() {
      watcher.stop();
      shell.stop();
    },
  };
}

function opened(
  { link, address }: Pick<Slot, "link" | "address">,
  policy: EgressPolicy,
  before?: SlotPolicy,
): SlotPolicy {
  const wasRedirected = before?.wasRedirected === true || before?.policy?.redirected === true;
  return { link, address, open: true, policy: kernelPolicy(policy), wasRedirected };
}

function isListed({ policy }: SlotPolicy): boolean {
  return policy !== undefined && policy.allowed.length > 0;
}

/**
 * Docker's own filter drops packets that it does not know, and an accept in this table cannot overrule it. Docker leaves
 * the chain DOCKER-USER to others. A host without that chain may need the rules all the same, when its filter drops what it
 * does not know: the probe (`reach/`) finds that, and only Docker makes the chain. True: a rule was missing.
 */
async function allowInDocker(plan: Plan, run: RunCommand): Promise<boolean> {
  const rules = await looking(run)("iptables", ["-w", "5", "-S", "DOCKER-USER"]).catch(() => undefined);
  if (rules === undefined) return false;
  const missing = dockerRules(plan).filter((rule) => !rules.split("\n").includes(`-A DOCKER-USER ${rule}`));
  for (const rule of missing) await run("iptables", ["-w", "5", "-I", "DOCKER-USER", ...rule.split(" ")]);
  return missing.length > 0;
}

/** As `iptables -S` prints them. */
function dockerRules(plan: Plan): readonly string[] {
  const links = `${plan.network}-+`;
  return [`-o ${links} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`, `-i ${links} -j ACCEPT`];
}
