/**
 * Finds out whether the kernel's table is what this node has put there, and puts it back when it is not. A listing that fails, as on a
 * machine that is short of processes or memory, says nothing about the table.
 */

import type { SlotPolicy } from "./firewall-rules.ts";
import { missingElements } from "./table-check.ts";

export type Look =
  | { readonly is: "same" }
  | { readonly is: "changed" }
  | { readonly is: "unread"; readonly error: Error };

export interface ExpectedTable {
  /** The table without the contents of its sets, as nft lists it. */
  readonly rules: string;
  readonly slots: ReadonlyMap<string, SlotPolicy>;
}

/** @param list lists the table with these options of nft */
export async function lookAtTable(list: (...how: string[]) => Promise<string>, expected: ExpectedTable): Promise<Look> {
  const [rules, elements] = await Promise.allSettled([list("-s", "-t"), list("-j", "-s")]);
  if (rules.status === "rejected") return unreadOrGone(rules.reason);
  if (elements.status === "rejected") return unreadOrGone(elements.reason);
  if (rules.value !== expected.rules) return { is: "changed" };
  const missing = missingElements(elements.value, expected.slots.values());
  if (missing === undefined) return { is: "unread", error: new Error("nft's listing of the table is cut off") };
  return { is: missing ? "changed" : "same" };
}

/** The kernel says that there is no such table; any other failure is one of the listing. */
function unreadOrGone(reason: unknown): Look {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  return error.message.includes("No such file or directory") ? { is: "changed" } : { is: "unread", error };
}

export interface TableRepairDeps {
  readonly look: () => Promise<Look>;
  /** How many changes this node has made. */
  readonly changes: () => number;
  /** Runs the work while this node changes nothing. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  readonly putBack: () => Promise<void>;
  /** The table could not be read. */
  readonly unread: (error: Error) => void;
}

/** After so many failed listings in a row the agent replaces the table, because the table may permit anything. */
const MOST_UNREAD = 3;

/** One repair at a time; resolves to whether the table was put back. */
export function createTableRepair({ look, changes, alone, putBack, unread }: TableRepairDeps): () => Promise<boolean> {
  let unreadable = 0;
  return async () => {
    const before = changes();
    // Outside of the queue, because reading a large table takes longer than a start may wait.
    const first = await look();
    return alone(async () => {
      const isSure = first.is === "same" && before === changes();
      // Twice before it is called a change: nft fills sets shortly after a change of its own, and a listing can fail.
      const seen = isSure ? first : await look();
      if (seen.is === "same") {
        unreadable = 0;
        return false;
      }
      if (seen.is === "unread") {
        unread(seen.error);
        if (++unreadable < MOST_UNREAD) return false;
      }
      await putBack();
      unreadable = 0;
      return true;
    });
  };
}
