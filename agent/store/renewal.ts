/** Renews what is sealed under an earlier key, when the database is opened, in one transaction. */

import type { Sqlite } from "./database/database.ts";
import { controlContext, egressContext, forgetRemoved } from "./database/database.ts";
import type { NodeSeal } from "./database/seal-key.ts";

/** Every sealed value: how it is read and written, and its context. */
const SEALED = [
  {
    read: "select id, egress value from executions",
    write: "update executions set egress = ? where id = ?",
    context: egressContext,
  },
  {
    read: "select id, control_token value from containers",
    write: "update containers set control_token = ? where id = ?",
    context: controlContext,
  },
  {
    read: "select id, json_extract(disk, '$.controlToken') value from snapshots",
    write: "update snapshots set disk = json_set(disk, '$.controlToken', ?) where id = ?",
    context: controlContext,
  },
] as const;

/** After a crash at any line the file has all keys that its values need: the earlier ones go last. */
export function renewSealed(database: Sqlite, sealing: NodeSeal): void {
  const { forgetPrevious } = sealing;
  if (forgetPrevious === undefined) return;
  database.transaction(() => {
    for (const { read, write, context } of SEALED) {
      const set = database.prepare<[string, string]>(write);
      for (const { id, value } of database.prepare<[], { id: string; value: string | null }>(read).all()) {
        if (value === null || value.startsWith(sealing.prefix)) continue;
        const text = opened(sealing, value, context(id));
        if (text !== undefined) set.run(sealing.close(text, context(id)), id);
      }
    }
  })();
  try {
    // Also makes the values durable: a power cut must not take them back once the earlier keys are gone.
    if (!forgetRemoved(database)) return;
  } catch {
    // The disk is full: the next start tries again.
    return;
  }
  forgetPrevious();
}

/** Undefined: none of the keys opens the value, so none of them is needed for it. */
function opened(sealing: NodeSeal, value: string, context: string): string | undefined {
  try {
    return sealing.open(value, context);
  } catch {
    return undefined;
  }
}
