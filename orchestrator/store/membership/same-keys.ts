/**
 * The keys that all orchestrators of a database must have: what one seals or signs, the others open and check. Members name
 * theirs by ids, which reveal nothing of them. An operator adds a new key as an earlier one
 * everywhere before it becomes the current one anywhere.
 */

import { AppError } from "../../../shared/http/errors.ts";

/** Ids of the keys of each setting, the current one first. */
export type SharedKeys = Readonly<Record<string, readonly string[]>>;

interface OtherMember {
  readonly id: string;
  /** Null: a version that names no keys. */
  readonly keys: string | null;
}

/** @throws {AppError} failed_precondition, with the setting that differs from another member's and what to do */
export function checkSameKeys(mine: SharedKeys, others: readonly OtherMember[]): void {
  for (const { id, keys } of others) {
    if (keys === null) continue;
    const theirs = JSON.parse(keys) as SharedKeys;
    for (const [setting, [current = "", ...earlier]] of Object.entries(mine)) {
      const [other, ...otherEarlier] = theirs[setting] ?? [];
      if (other === undefined || other === current) continue;
      if (!earlier.includes(other)) {
        throw differs(
          setting,
          `is another than that of the orchestrator ${id}, which uses the same database: give both the same`,
        );
      }
      if (!otherEarlier.includes(current)) {
        throw differs(
          setting,
          `is not known to the orchestrator ${id}, which uses the same database: add it there to ${setting}_PREVIOUS first`,
        );
      }
    }
  }
}

function differs(setting: string, how: string): AppError {
  return new AppError("failed_precondition", `this orchestrator does not start: its ${setting} ${how}`);
}
