/** The sandboxes that an API key created, by the audit log: the rows of the list do not name their key. */

import type { AuditEntry } from "../../../shared/api/audit.ts";
import { pages } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";

/** Entries that are read: older sandboxes have most likely ended. */
const MOST = 2_000;
/** Both versions of the route. */
const ACTIONS = ["create", "createV1"];
const EVERY_MS = 10_000;

export interface CreatedBy {
  /** Undefined: no key is chosen, or the log was not read yet. */
  readonly ids: ReadonlySet<string> | undefined;
  readonly error: unknown;
}

/** @param key its id; null: none is chosen */
export function useCreatedBy(key: string | null): CreatedBy {
  const loaded = useLoaded(
    async (signal) => {
      if (key === null) return undefined;
      const lists = await Promise.all(
        ACTIONS.map((action) =>
          pages<AuditEntry>("/audit", signal, { query: { actor: key, action, result: "begun" }, most: MOST }),
        ),
      );
      return { key, ids: new Set(lists.flat().map(({ object }) => object.id ?? "")) };
    },
    [key],
    key === null ? undefined : EVERY_MS,
  );
  return { ids: loaded.value?.key === key ? loaded.value?.ids : undefined, error: loaded.error };
}
