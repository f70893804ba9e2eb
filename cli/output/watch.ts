/** Shows a list, and with `--watch` each row again that is new or has changed, until the user ends it. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Options } from "../options.ts";
import type { Output, View } from "./output.ts";
import { cells } from "./table.ts";

const EVERY_MS = 2_000;

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
  for (;;) {
    await sleep(EVERY_MS, undefined, { signal });
    items = await read();
    const now = states(items);
    const changed = items.filter((item) => known.get(view.name(item)) !== now.get(view.name(item)));
    if (changed.length > 0) await out.list(view, changed, { ...options, headers: false });
    for (const name of known.keys()) if (!now.has(name)) out.note(`${name} is gone`);
    known = now;
  }
}
