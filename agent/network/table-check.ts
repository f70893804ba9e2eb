/** Compares the sets of the table with their expected contents, from the output of `nft -j`. Pure. */

import { SLOT_SETS, type SlotPolicy, type SlotSet, slotElements } from "./firewall-rules.ts";
import { readSets } from "./nft/nft-json.ts";

/** True when an element is missing or was added by another program; undefined when the text is no listing. */
export function missingElements(json: string, slots: Iterable<SlotPolicy>): boolean | undefined {
  const wanted = new Map<SlotSet, Set<string>>(SLOT_SETS.map((name) => [name, new Set()]));
  for (const slot of slots) {
    const elements = slotElements(slot);
    for (const name of SLOT_SETS)
      for (const element of elements[name] ?? []) wanted.get(name)?.add(element.replaceAll('"', ""));
  }
  const found = readSets(json);
  if (found.size === 0) return undefined;
  return SLOT_SETS.some((name) => {
    const want = wanted.get(name) ?? new Set();
    const have = found.get(name);
    return have === undefined || have.length !== want.size || have.some(({ parts }) => !want.has(parts.join(" . ")));
  });
}
