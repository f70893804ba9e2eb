/** The orders that a test sends to `firewall-host.ts`, and the names and numbers of its network. */

import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";

export const NETWORK = "fw";
export const SUBNET = "10.218.0.0/24";
export const EGRESS_PORT = 4040;
export const CONNECTIONS = 40;
/** The address that the probe's packets are made for: one of the world, so that one which left the node would be counted. */
export const PROBED = "198.51.100.130";

export type Order =
  | { readonly do: "add"; readonly slot: number }
  | { readonly do: "open"; readonly slot: number; readonly policy: EgressPolicy }
  | { readonly do: "close" | "forget"; readonly slot: number }
  | { readonly do: "rebuild"; readonly open: Readonly<Record<number, EgressPolicy>> }
  /** Whether packets of a sandbox come through the node's rules; `egress`: the way to the egress process too. */
  | { readonly do: "probe"; readonly egress: boolean }
  | { readonly do: "prepareProbe" }
  | { readonly do: "repair" | "restored" | "counts" | "decisions" | "watch" | "unwatch" | "hostServer" }
  /** Runs a command in the namespace of a slot; slot 0 is the node's own namespace. */
  | { readonly do: "run"; readonly slot: number; readonly command: readonly string[] }
  | { readonly do: "start"; readonly slot: number; readonly command: readonly string[] };
