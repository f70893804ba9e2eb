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

/** State of an element at the last read. */
export interface Told {
  readonly packets: number;
  /** What is left of its life. Each packet prolongs it: one that has more left than before, and no more packets, is another one. */
  readonly leftMs: number;
}

/** Changes since the last call; `told` holds the former counters, and drops those of removed elements. */
export function parseFlows(texts: readonly (readonly [LogSet, string])[], told: Map<string, Told>): KernelFlow[] {
  const seen = new Set<string>();
  const flows = texts.flatMap(([set, text]) =>
    [...text.matchAll(/([\d.]+) \. ([\d.]+) \. (tcp|udp) \. (\d+)([^,}]*?) counter packets (\d+)/g)].flatMap(
      (match) => {
        const [, source = "", address = "", protocol, port, times = "", packets] = match;
        const key = `${set} ${source} ${address} ${protocol} ${port}`;
        seen.add(key);
        const count = since(told, key, { packets: Number(packets), leftMs: leftMs(times) });
        if (count === 0) return [];
        const how = protocol === "udp" ? ("udp" as const) : ("tcp" as const);
        return [{ source, address, protocol: how, port: Number(port), outcome: OUTCOMES[set], count }];
      },
    ),
  );
  for (const key of told.keys()) if (!seen.has(key) && !key.startsWith("untold ")) told.delete(key);
  return flows;
}

export function parseUntold(text: string, told: Map<string, Told>): Map<string, number> {
  const seen = new Set<string>();
  const untold = new Map<string, number>();
  for (const [, source = "", times = "", packets] of text.matchAll(/([\d.]+) ([^,}]*? )?counter packets (\d+)/g)) {
    const key = `untold ${source}`;
    seen.add(key);
    const count = since(told, key, { packets: Number(packets), leftMs: leftMs(times) });
    if (count > 0) untold.set(source, count);
  }
  for (const key of told.keys()) if (key.startsWith("untold ") && !seen.has(key)) told.delete(key);
  return untold;
}

/** For an element that was removed and added again: all of its count. */
function since(told: Map<string, Told>, key: string, now: Told): number {
  const before = told.get(key);
  told.set(key, now);
  const anew =
    before === undefined ||
    now.packets < before.packets ||
    (now.packets === before.packets && now.leftMs > before.leftMs);
  return anew ? now.packets : now.packets - before.packets;
}

const UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** As in `timeout 1h expires 59m59s936ms`. */
function leftMs(times: string): number {
  const text = /expires (\w+)/.exec(times)?.[1] ?? "";
  return [...text.matchAll(/(\d+)(ms|[dhms])/g)].reduce(
    (sum, [, n, unit = ""]) => sum + Number(n) * (UNITS_MS[unit] ?? 0),
    0,
  );
}
