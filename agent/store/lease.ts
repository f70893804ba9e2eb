/** The node's lease as the last agent process knew it, and what it froze. The only SQL on that table. */

import type { Sqlite } from "./database/database.ts";

interface KeptLease {
  /** The times are of this start of the kernel. */
  readonly bootId: string;
  /** Undefined: the last answer limited nothing. */
  readonly grant: { readonly sentAt: number; readonly forMs: number } | undefined;
  /** Ids of executions. */
  readonly frozen: readonly string[];
}

export interface LeaseStore {
  /** Undefined: the node has had none. */
  get(): KeptLease | undefined;
  set(lease: KeptLease): void;
}

interface Row {
  boot_id: string;
  sent_at: number | null;
  for_ms: number | null;
  frozen: string;
}

export function leaseStore(database: Sqlite): LeaseStore {
  const get = database.prepare<[], Row>("select boot_id, sent_at, for_ms, frozen from lease");
  const set = database.prepare<Row>("insert or replace into lease values (1, @boot_id, @sent_at, @for_ms, @frozen)");
  return {
    get() {
      const row = get.get();
      if (row === undefined) return undefined;
      const { boot_id: bootId, sent_at: sentAt, for_ms: forMs } = row;
      const grant = sentAt === null || forMs === null ? undefined : { sentAt, forMs };
      return { bootId, grant, frozen: JSON.parse(row.frozen) as string[] };
    },
    set({ bootId, grant, frozen }) {
      set.run({
        boot_id: bootId,
        // Rounds down, so that the stored lease never ends later than the granted one.
        sent_at: grant === undefined ? null : Math.floor(grant.sentAt),
        for_ms: grant?.forMs ?? null,
        frozen: JSON.stringify(frozen),
      });
    },
  };
}
