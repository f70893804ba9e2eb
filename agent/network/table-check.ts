/** Compares the sets of the table with their expected contents, from the output of `nft`. Pure. */

import { addressText, parseRange } from "../../shared/policy/ranges.ts";
import { SLOT_SETS, type SlotPolicy, type SlotSet, slotElements } from "./firewall-rules.ts";

/** True when an element is missing or was added by another program. */
export function missingElements(text: string, slots: Iterable<SlotPolicy>): boolean {
  const wanted = new Map<SlotSet, Set<string>>(SLOT_SETS.map((name) => [name, new Set()]));
  for (const slot of slots) {
    const elements = slotElements(slot);
    for (const name of SLOT_SETS) for (const element of elements[name] ?? []) wanted.get(name)?.add(element);
  }
  const found = parseSets(text);
  return SLOT_SETS.some((name) => {
    const want = wanted.get(name) ?? new Set();
    const have = found.get(name);
    return have === undefined || have.length !== want.size || have.some((element) => !want.has(element));
  });
}

function parseSets(text: string): ReadonlyMap<string, readonly string[]> {
  const sets = [...text.matchAll(/\tset (\S+) \{\n([\s\S]*?)\n\t\}/g)];
  return new Map(
    sets.map(([, name = "", body = ""]) => {
      const elements = /elements = \{([\s\S]*)\}/.exec(body)?.[1]?.split(",") ?? [];
      return [name, elements.map((element) => asWritten(element.trim()))];
    }),
  );
}

/** nft prints a range as a prefix where it is one; here it is written with both ends. */
function asWritten(element: string): string {
  const [left = "", right] = element.split(" . ");
  if (right === undefined || left.startsWith('"')) return element;
  const range = right.includes("/") ? parseRange(right) : undefined;
  return range === undefined ? element : `${left} . ${addressText(range.first)}-${addressText(range.last)}`;
}
