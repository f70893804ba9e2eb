/** The kernel's counters of a sandbox's link: how many bytes have passed through it since the link was made. */

import { readFileSync } from "node:fs";

/** As the sandbox sees it. */
export interface Traffic {
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** The link is the host's side, so what it receives is what the sandbox sends. A missing link counts nothing. */
export function trafficOf(link: string): Traffic {
  return { sentBytes: counter(link, "rx_bytes"), receivedBytes: counter(link, "tx_bytes") };
}

function counter(link: string, name: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${link}/statistics/${name}`, "utf8"));
  } catch {
    // The sandbox has just ended, which another part handles.
    return 0;
  }
}
