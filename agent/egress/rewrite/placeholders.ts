/**
 * Replaces `${e2b.secrets.NAME}` and the like in header values of rules. Values exist for one request only: no error and
 * no log holds them, and no byte of a request is sent before all of them are known. Pure but for `resolve`.
 */

import { fillPlaceholders, placeholdersOf } from "../../../shared/policy/placeholders.ts";
import { canBeSet, isHeaderText, isHeaderValue } from "../../../shared/policy/rule-headers.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";
import type { PlaceholderAnswer } from "../channel/messages.ts";

/** @param placeholder without `${` and `}`, in the `e2b` spelling: `e2b.secrets.NAME` */
export type Resolve = (placeholder: string) => Promise<PlaceholderAnswer>;

/** Why a rule could not be applied. The message names header and placeholder, never a value. */
export class UnresolvedError extends Error {}

const LIMIT_MS = 10_000;

/** The names that `Resolve` is called with for this value. @throws {UnresolvedError} for a malformed one */
export function placeholdersIn(value: string): readonly string[] {
  return placeholdersOf(value).map(({ text, asks }) => {
    if (asks === undefined) throw new UnresolvedError(`the placeholder ${printable(text)} is malformed`);
    return asks;
  });
}

/** Whether a header of the rule has a placeholder, well-formed or not. */
export function needsValues(headers: Readonly<Record<string, string>>): boolean {
  return Object.values(headers).some((value) => placeholdersOf(value).length > 0);
}

/**
 * The headers to set, each placeholder resolved once, all in parallel. Values are inserted unchanged: text in one that
 * looks like a placeholder stays.
 * @throws {UnresolvedError}
 */
export async function resolveHeaders(
  headers: Readonly<Record<string, string>>,
  resolve: Resolve,
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set<string>();
  for (const [name, template] of Object.entries(headers)) {
    if (!canBeSet(name)) throw new UnresolvedError(`a rule cannot set the header ${printable(name)}`);
    for (const placeholder of placeholdersIn(template)) wanted.add(placeholder);
  }
  const asked = [...wanted].map(async (placeholder) => [placeholder, await ask(placeholder, resolve)] as const);
  const values = new Map(await Promise.all(asked));

  const resolved = new Map<string, [string, string]>();
  for (const [name, template] of Object.entries(headers)) {
    const found = placeholdersIn(template).map((placeholder) => values.get(placeholder) ?? "");
    const value = fillPlaceholders(template, found);
    if (!isHeaderText(value))
      throw new UnresolvedError(`the value of the header ${printable(name)} has characters that no header can have`);
    if (!isHeaderValue(value)) {
      throw new UnresolvedError(
        `the value of the header ${printable(name)} begins or ends with white space, which no header keeps`,
      );
    }
    resolved.set(name.toLowerCase(), [name, value]);
  }
  return new Map(resolved.values());
}

async function ask(placeholder: string, resolve: Resolve): Promise<string> {
  const name = printable(`\${${placeholder}}`);
  // An error of `resolve` may contain a value, so nothing of it is passed on.
  const failed = (): PlaceholderAnswer => ({ problem: "the node could not ask for its value" });
  const late = (): PlaceholderAnswer => ({ problem: "its value did not come in time" });
  const answer = await withDeadline(resolve(placeholder).catch(failed), LIMIT_MS, late);
  if ("problem" in answer)
    throw new UnresolvedError(`the placeholder ${name} cannot be resolved: ${printable(answer.problem)}`);
  if (!isHeaderText(answer.value)) {
    const fault = `the value of the placeholder ${name} has characters that no header can have`;
    throw new UnresolvedError(`${fault}${whichCharacters(answer.value)}`);
  }
  return answer.value;
}

/** Tells which kind, and nothing else about the value: the sandbox reads it. */
function whichCharacters(value: string): string {
  if (/^[^\r\n]*\r?\n$/.test(value)) return ": a line break at its end, so store it without that";
  if (/[\r\n]/.test(value)) return ": line breaks";
  return /[^\0-\xff]/.test(value) ? ": characters outside of Latin-1" : ": control characters";
}

function printable(text: string): string {
  return text.slice(0, 300).replaceAll(/[^\x20-\x7e]/g, "?");
}
