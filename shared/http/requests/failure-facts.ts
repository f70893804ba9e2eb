/** Log fields of a failed request: all facts for a fault of the program, one short line for an explained failure. Pure. */

import type { AppError } from "../errors.ts";

const MOST_MESSAGE = 320;
const MOST_CAUSE = 240;
const MOST_PATH = 160;

interface Failed {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

/** All facts of the failure, with stacks and the output of programs. */
export function wholeFailure(error: AppError, { method, path }: Failed) {
  return { err: error, cause: error.cause, details: error.details, method, path };
}

/** Facts that fit in a line of a kilobyte, however long their parts are. */
export function shortFailure(error: AppError, { method, path }: Failed) {
  const { cause } = error;
  return {
    code: error.code,
    reason: shown(error.message, MOST_MESSAGE),
    ...(cause === undefined ? {} : { because: shown(inWords(cause), MOST_CAUSE) }),
    method,
    path: shown(path, MOST_PATH),
  };
}

function inWords(cause: unknown): string {
  if (cause instanceof Error) return cause.message;
  return typeof cause === "string" ? cause : typeof cause;
}

function shown(text: string, most: number): string {
  const line = text
    .slice(0, most + 1)
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .replaceAll(/["\\]/g, "'");
  return line.length > most ? `${line.slice(0, most)}...` : line;
}
