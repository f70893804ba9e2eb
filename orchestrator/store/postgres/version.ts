/** Decides whether the store works with a PostgreSQL server of this version. Pure. */

import { AppError } from "../../../shared/http/errors.ts";

const OLDEST_MAJOR = 15;

/**
 * Throws when the server is older than the store needs.
 * @param version the server's `server_version_num`, for example 150004 for 15.4
 */
export function checkPostgresVersion(version: number): void {
  if (version >= OLDEST_MAJOR * 10_000) return;
  const message = `PostgreSQL ${nameOf(version)} is too old: DATABASE_URL needs version ${OLDEST_MAJOR} or newer`;
  throw new AppError("internal", message);
}

/** Before version 10 the major version had two parts: 90624 is 9.6.24, 140009 is 14.9. */
function nameOf(version: number): string {
  const major = Math.floor(version / 10_000);
  if (major >= 10) return `${major}.${version % 10_000}`;
  return `${major}.${Math.floor(version / 100) % 100}.${version % 100}`;
}
