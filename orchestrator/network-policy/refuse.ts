/** Refusals of network options. Pure. */

import { AppError } from "../../shared/http/errors.ts";

export function refuse(message: string): never {
  throw new AppError("bad_request", message);
}

/** A caller's value, shortened for a message. */
export function quoted(text: string): string {
  return `'${text.slice(0, 128)}'`;
}

/** The rest of a message, where there is one. */
export function behind(separator: string, text: string | undefined): string {
  return text === undefined ? "" : separator + text;
}
