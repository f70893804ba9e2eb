/** Checks the audit log of a database that no orchestrator uses, for instance of a copy. Changes nothing in it. */

import { existsSync } from "node:fs";
import { Kysely } from "kysely";
import { AppError } from "../../shared/http/errors.ts";
import { type AuditChecked, auditStore } from "../store/audit/audit.ts";
import type { Head } from "../store/audit/chain.ts";
import { openDialect } from "../store/database.ts";
import type { Tables } from "../store/tables.ts";

/**
 * @param place as of `openDatabase`
 * @param known an entry that was noted elsewhere
 */
export async function verifyAudit(
  place: string,
  known: Head | undefined,
): Promise<AuditChecked & { readonly whole: boolean }> {
  // SQLite would make a new file.
  if (!place.startsWith("postgres") && !existsSync(place)) throw new AppError("not_found", `no database at '${place}'`);
  const database = new Kysely<Tables>({ dialect: openDialect(place).dialect });
  try {
    const checked = await auditStore(database).check(known === undefined ? {} : { known });
    return { ...checked, whole: checked.broken === undefined };
  } finally {
    await database.destroy();
  }
}
