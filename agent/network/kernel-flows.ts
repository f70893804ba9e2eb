/** What the kernel wrote down about flows, read from the elements of its dynamic sets. */

import type { LogSet } from "./firewall-rules.ts";
import { readSets, type SetElement } from "./nft/nft-json.ts";

/** Packets that began a flow to one destination, or tried to. */
export interface KernelFlow {
  readonly source: string;
  readonly address: string;
  readonly protocol: "tcp" | "udp";
  readonly port: number;
  readonly outcome: "allowed" | "denied" | "crowded";
  readonly count: number;
}

const OUTCOMES: Readonly<Record<LogSet, KernelFlow["outcome"]>> = {
  granted: "allowed",
  denials: "denied",
  crowded: "crowded",
};

/** State of an element at the last read. */
export interface Told {
  readonly packets: number;
  /** Each packet prolongs the life of an element: one with more left than before, and no more packets, was made anew. */
  readonly leftSeconds: number;
}

/** Changes since the last call; `told` holds the former counters, and drops those of removed elements. */
export function readFlows(texts: readonly (readonly [LogSet, string])[], told: Map<string, Told>): KernelFlow[] {
  const seen = new Set<string>();
  const flows = texts.flatMap(([set, text]) =>
    elementsOf(text, set).flatMap((element) => {
      const [source = "", address = "", protocol = "", port = ""] = element.parts;
      if (!isCarried(protocol) || !/^\d{1,5}$/.test(port)) return [];
      const key = `${set} ${source} ${address} ${protocol} ${port}`;
      seen.add(key);
      const count = since(told, key, element);
      if (count === 0) return [];
      return [{ source, address, protocol, port: Number(port), outcome: OUTCOMES[set], count }];
    }),
  );
  for (const key of told.keys()) if (!seen.has(key) && !key.startsWith("untold ")) told.delete(key);
  return flows;
}

export function readUntold(text: string, told: Map<string, Told>): Map<string, number> {
  const seen = new Set<string>();
  const untold = new Map<string, number>();
  for (const element of elementsOf(text, "untold")) {
    const [source = ""] = element.parts;
    const key = `untold ${source}`;
    seen.add(key);
    const count = since(told, key, element);
    if (count > 0) untold.set(source, count);
  }
  for (const key of told.keys()) if (key.startsWith("untold ") && !seen.has(key)) told.delete(key);
  return untold;
}

function isCarried(protocol: string): protocol is KernelFlow["protocol"] {
  return protocol === "tcp" || protocol === "udp";
}

function elementsOf(text: string, set: string): readonly SetElement[] {
  return readSets(text).get(set) ?? [];
}

/** For an element that was removed and added again: all of its count. */
function since(told: Map<string, Told>, key: string, { packets, leftSeconds }: SetElement): number {
  const before = told.get(key);
  told.set(key, { packets, leftSeconds });
  const anew =
    before === undefined ||
    packets < before.packets ||
    (packets === before.packets && leftSeconds > before.leftSeconds);
  return anew ? packets : packets - before.packets;
}
