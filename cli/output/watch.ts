/** Shows a list, and with `--watch` each row again that is new or has changed, until the user ends it. */

import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, Failure } from "../failure.ts";
import type { Options } from "../options.ts";
import type { Output, View } from "./output.ts";
import { cells } from "./table.ts";

const EVERY_MS = 2_000;
const DEFAULT_LIMIT = 100;

interface Limited {
  readonly most: number;
  /** Tells a person who set no limit, once, that the platform may have more: the list would look whole. */
  readonly told: <T>(items: readonly T[]) => readonly T[];
}

/** The limit of lists that grow without end. */
export function limitOf({ out }: { readonly out: Output }, { limit }: Options): Limited {
  const most = limit ?? DEFAULT_LIMIT;
  let isTold = limit !== undefined;
  return {
    most,
    told(items) {
      if (!isTold && items.length >= most) out.note(`only ${most} are shown: --limit shows more`);
      isTold ||= items.length >= most;
      return items;
    },
  };
}

export async function showList<T>(
  { out, signal }: { readonly out: Output; readonly signal: AbortSignal },
  options: Options,
  view: View<T>,
  read: () => Promise<readonly T[]>,
): Promise<void> {
  let items = await read();
  await out.list(view, items, options);
  if (options.watch !== true) return;
  const still = view.columns.filter(({ moving }) => moving !== true);
  const states = (all: readonly T[]) => new Map(all.map((item) => [view.name(item), cells(still, item).join("\t")]));
  let known = states(items);
  let hasHead = items.length > 0;
  const asked = patient({ out, signal });
  for (;;) {
    await sleep(EVERY_MS, undefined, { signal });
    const answer = await asked(read);
    if (answer === undefined) continue;
    items = answer;
    const now = states(items);
    const changed = items.filter((item) => known.get(view.name(item)) !== now.get(view.name(item)));
    if (changed.length > 0) await out.list(view, changed, hasHead ? { ...options, headers: false } : options);
    hasHead ||= changed.length > 0;
    for (const name of known.keys()) if (!now.has(name)) out.note(`${name} is gone`);
    known = now;
  }
}

interface Patience {
  /** Nothing was asked before: what fails then may be wrong on the line, or was never there. */
  readonly isFirst?: boolean;
  /** How long there may be no answer. Absent: until the user ends the command. */
  readonly longestMs?: number;
}

/** Asks again and again what may fail while the platform is restarted, and says so once. Undefined: no answer this time. */
export function patient(
  { out, signal }: { readonly out: Pick<Output, "note">; readonly signal: AbortSignal },
  { isFirst = false, longestMs = Number.POSITIVE_INFINITY }: Patience = {},
) {
  let wasHeard = !isFirst;
  let awaySince: number | undefined;
  return async <T>(ask: () => Promise<T>): Promise<T | undefined> => {
    try {
      const answer = await ask();
      wasHeard = true;
      awaySince = undefined;
      return answer;
    } catch (error) {
      if (signal.aborted || !wasHeard || !mayPass(error)) throw error;
      if (awaySince === undefined) out.note(`${error.message}: trying again`);
      awaySince ??= Date.now();
      if (Date.now() - awaySince >= longestMs) throw error;
      return undefined;
    }
  };
}

/** Of a platform that is restarted or away. What it refuses, it refuses again. */
function mayPass(error: unknown): error is Failure {
  return error instanceof Failure && (error.exitCode === EXIT.failed || error.exitCode === EXIT.timedOut);
}
