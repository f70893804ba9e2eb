/** Reads the kernel's decisions about flows from the elements of its dynamic sets. */

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
export interface LastRead {
  readonly packets: number;
  /** Each packet restarts this time. An element with more time left but no new packets was removed and added again. */
  readonly leftSeconds: number;
}

/** Changes since the last call; `lastReads` keeps the previous counters, without those of removed elements. */
export function readFlows(
  texts: readonly (readonly [LogSet, string])[],
  lastReads: Map<string, LastRead>,
): KernelFlow[] {
  const seen = new Set<string>();
  const flows = texts.flatMap(([set, text]) =>
    elementsOf(text, set).flatMap((element) => {
      const [source = "", address = "", protocol = "", port = ""] = element.parts;
      if (!isCarried(protocol) || !/^\d{1,5}$/.test(port)) return [];
      const key = `${set} ${source} ${address} ${protocol} ${port}`;
      seen.add(key);
      const count = since(lastReads, key, element);
      if (count === 0) return [];
      return [{ source, address, protocol, port: Number(port), outcome: OUTCOMES[set], count }];
    }),
  );
  for (const key of lastReads.keys()) if (!seen.has(key) && !key.startsWith("unlogged ")) lastReads.delete(key);
  return flows;
}

export function readUnlogged(text: string, lastReads: Map<string, LastRead>): Map<string, number> {
  const seen = new Set<string>();
  const unlogged = new Map<string, number>();
  for (const element of elementsOf(text, "unlogged")) {
    const [source = ""] = element.parts;
    const key = `unlogged ${source}`;
    seen.add(key);
    const count = since(lastReads, key, element);
    if (count > 0) unlogged.set(source, count);
  }
  for (const key of lastReads.keys()) if (key.startsWith("unlogged ") && !seen.has(key)) lastReads.delete(key);
  return unlogged;
}

function isCarried(protocol: string): protocol is KernelFlow["protocol"] {
  return protocol === "tcp" || protocol === "udp";
}

function elementsOf(text: string, set: string): readonly SetElement[] {
  return readSets(text).get(set) ?? [];
}

/** Packets since the last read; all packets of an element that was removed and added again. */
function since(lastReads: Map<string, LastRead>, key: string, { packets, leftSeconds }: SetElement): number {
  const before = lastReads.get(key);
  lastReads.set(key, { packets, leftSeconds });
  const startedAgain =
    before === undefined ||
    packets < before.packets ||
    (packets === before.packets && leftSeconds > before.leftSeconds);
  return startedAgain ? packets : packets - before.packets;
}
