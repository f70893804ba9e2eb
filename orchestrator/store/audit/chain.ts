/**
 * The chain of the audit log: each entry's hash covers all of its columns and the hash of the entry before it, so an
 * edited, missing, inserted or moved entry does not fit. Pure.
 */

import { createHash } from "node:crypto";
import type { AuditRow } from "./row.ts";

/** The end of a chain: the hash and the number that the next entry builds on. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** What the first entry builds on. */
export const GENESIS: Head = { seq: 0, hash: "0".repeat(64) };

export type Unchained = Omit<AuditRow, "hash">;

/** SHA-256, hexadecimal, of a JSON list: the version of this form, and the columns in the order below. */
export function hashOf(row: Unchained): string {
  const columns = [
    "svc-audit-1",
    row.seq,
    row.at,
    row.project_id,
    row.actor_kind,
    row.actor_id,
    row.actor_mask,
    row.action,
    row.object_kind,
    row.object_id,
    row.result,
    row.status,
    row.error_code,
    row.address,
    row.request_id,
    row.refers_to,
    row.details,
    row.previous_hash,
  ];
  return createHash("sha256").update(JSON.stringify(columns)).digest("hex");
}

/**
 * Earlier versions hashed an entry with the U+0000 that a client had put into an id, and PostgreSQL, whose text has none, stores U+FFFD
 * in its place: written there, or moved there from SQLite.
 */
function fits(row: AuditRow): boolean {
  if (row.hash === hashOf(row)) return true;
  const columns = Object.entries(row).map(([name, value]: [string, unknown]): [string, unknown] => [
    name,
    typeof value === "string" ? value.replaceAll("\u{FFFD}", "\0") : value,
  ]);
  return row.hash === hashOf(Object.fromEntries(columns) as unknown as AuditRow);
}

export interface Break {
  /** The first entry that does not fit, or is missing. */
  readonly seq: number;
  readonly fault: "missing" | "edited" | "unchained" | "replaced";
}

/** Checks one entry against the end of the chain before it. Undefined: it fits. */
export function breakAt(before: Head, row: AuditRow): Break | undefined {
  if (row.seq > before.seq + 1) return { seq: before.seq + 1, fault: "missing" };
  // Only an entry at or below the anchor can have such a number.
  if (row.seq <= before.seq) return { seq: row.seq, fault: "unchained" };
  if (!fits(row)) return { seq: row.seq, fault: "edited" };
  return row.previous_hash === before.hash ? undefined : { seq: row.seq, fault: "unchained" };
}
