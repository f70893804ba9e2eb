/** Which sandboxes a filter shows. Pure. */

import type { SandboxRow } from "./live.ts";

export interface Filter {
  /** Words that id, template or labels must have. */
  readonly text: string;
  readonly state: string;
  /** Minutes: older than so many; with a minus before them: younger. Empty: of any age. */
  readonly age: string;
  /** Id of a node; empty: on any. */
  readonly node: string;
}

export const EVERY: Filter = { text: "", state: "", age: "", node: "" };

interface Around {
  readonly now: number;
  /** Ids of the sandboxes on the chosen node; undefined: they are not known, so none is shown of a chosen node. */
  readonly onNode?: ReadonlySet<string> | undefined;
  /** No others are shown. */
  readonly only?: ReadonlySet<string> | undefined;
}

export function filtered(all: Iterable<SandboxRow>, filter: Filter, { now, onNode, only }: Around): SandboxRow[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const minutes = Number(filter.age);
  const bound = now - Math.abs(minutes) * 60_000;
  const shown = [...all].filter((sandbox) => {
    if (filter.state !== "" && sandbox.state !== filter.state) return false;
    if (only?.has(sandbox.sandboxID) === false) return false;
    if (filter.node !== "" && onNode?.has(sandbox.sandboxID) !== true) return false;
    if (minutes > 0 && Date.parse(sandbox.startedAt) > bound) return false;
    if (minutes < 0 && Date.parse(sandbox.startedAt) <= bound) return false;
    if (words.length === 0) return true;
    const text = textOf(sandbox);
    return words.every((word) => text.includes(word));
  });
  return shown.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
}

function textOf({ sandboxID, templateID, alias = "", metadata = {} }: SandboxRow): string {
  const labels = Object.entries(metadata).map(([name, value]) => `${name}=${value}`);
  return [sandboxID, templateID, alias, ...labels].join(" ").toLowerCase();
}
