/** What the kernel wrote down about flows, read from what `nft` prints of its dynamic sets. */

import type { LogSet } from "./firewall-rules.ts";

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

/** What is new since the last time; `told` remembers the counters, and forgets those that are gone. */
export function parseFlows(texts: readonly (readonly [LogSet, string])[], told: Map<string, number>): KernelFlow[] {
  const seen = new Set<string>();
  const flows = texts.flatMap(([set, text]) =>
    [...text.matchAll(/([\d.]+) \. ([\d.]+) \. (tcp|udp) \. (\d+)[^,}]*? counter packets (\d+)/g)].flatMap((match) => {
      const [, source = "", address = "", protocol, port, packets] = match;
      const key = `${set} ${source} ${address} ${protocol} ${port}`;
      seen.add(key);
      const count = since(told, key, Number(packets));
      if (count === 0) return [];
      const how = protocol === "udp" ? ("udp" as const) : ("tcp" as const);
      return [{ source, address, protocol: how, port: Number(port), outcome: OUTCOMES[set], count }];
    }),
  );
  for (const key of told.keys()) if (!seen.has(key) && !key.startsWith("untold ")) told.delete(key);
  return flows;
}

export function parseUntold(text: string, told: Map<string, number>): Map<string, number> {
  const seen = new Set<string>();
  const untold = new Map<string, number>();
  for (const [, source = "", packets] of text.matchAll(/([\d.]+) (?:[^,}]*? )?counter packets (\d+)/g)) {
    const key = `untold ${source}`;
    seen.add(key);
    const count = since(told, key, Number(packets));
    if (count > 0) untold.set(source, count);
  }
  for (const key of told.keys()) if (key.startsWith("untold ") && !seen.has(key)) told.delete(key);
  return untold;
}

/** A counter that went back belongs to an element that was made anew. */
function since(told: Map<string, number>, key: string, packets: number): number {
  const before = told.get(key) ?? 0;
  told.set(key, packets);
  return packets < before ? packets : packets - before;
}
