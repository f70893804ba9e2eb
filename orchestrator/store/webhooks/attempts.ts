/**
 * What is stored of attempts: the end of the latest one in columns, those before it in a short list, with the beginning of
 * what receivers answered. Pure.
 */

import { defined } from "../../../shared/defined.ts";
import type { DeliveryRow, EarlierAttempt } from "./record.ts";

/** Of one delivery: the attempts of a day are fewer. */
const MOST = 50;
/** Of an earlier attempt's answer, and of its failure in words. */
const MOST_CHARACTERS = 256;
/** Of both, of all earlier attempts: a receiver that fails for a day sends many error pages. The oldest ones lose them first. */
const MOST_OF_ALL = 4_096;

/** What the log keeps of an attempt. */
export interface AttemptFacts {
  readonly at: number;
  readonly durationMs: number;
  readonly httpStatus?: number | undefined;
  readonly errorClass?: string | undefined;
  readonly error?: string | undefined;
  readonly response?: string | undefined;
}

/** The columns of the end of an attempt; undefined: it has not ended. */
export function endColumns(facts: AttemptFacts | undefined) {
  return {
    duration_ms: facts === undefined ? null : Math.round(facts.durationMs),
    http_status: facts?.httpStatus ?? null,
    error_class: facts?.errorClass ?? null,
    error: facts?.error ?? null,
    response: facts?.response ?? null,
  };
}

export function earlierAttempts({ earlier }: Pick<DeliveryRow, "earlier">): readonly EarlierAttempt[] {
  return earlier === null ? [] : (JSON.parse(earlier) as EarlierAttempt[]);
}

/** The stored list once the latest attempt of `row` is an earlier one. */
export function attemptsBefore(row: DeliveryRow): string | null {
  if (row.attempted_at === null) return row.earlier;
  const latest: EarlierAttempt = {
    at: row.attempted_at,
    ...defined({
      durationMs: row.duration_ms ?? undefined,
      httpStatus: row.http_status ?? undefined,
      errorClass: row.error_class ?? undefined,
      error: beginningOf(row.error),
      responseBody: beginningOf(row.response),
    }),
  };
  return JSON.stringify(bounded([...earlierAttempts(row), latest].slice(-MOST)));
}

function bounded(attempts: readonly EarlierAttempt[]): readonly EarlierAttempt[] {
  let left = MOST_OF_ALL;
  return attempts
    .toReversed()
    .map(({ error, responseBody, ...attempt }) => {
      left -= (error ?? "").length + (responseBody ?? "").length;
      return left < 0 ? attempt : { ...attempt, ...defined({ error, responseBody }) };
    })
    .reverse();
}

function beginningOf(text: string | null): string | undefined {
  if (text === null) return undefined;
  if (text.length <= MOST_CHARACTERS) return text;
  // A character of two units is cut as a whole.
  return `${text.slice(0, MOST_CHARACTERS - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
