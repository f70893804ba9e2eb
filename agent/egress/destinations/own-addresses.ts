/** The node's own addresses: sandboxes must not reach what listens there, although the egress process could. */

import { networkInterfaces } from "node:os";

const FRESH_MS = 2_000;

export function ownAddresses(now: () => number = () => performance.now()): (address: string) => boolean {
  let known: { readonly at: number; readonly addresses: ReadonlySet<string> } | undefined;
  return (address) => {
    if (known === undefined || now() - known.at > FRESH_MS) {
      const list = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
      known = { at: now(), addresses: new Set(list.map((entry) => entry.address)) };
    }
    return known.addresses.has(address);
  };
}
