/** The role of each address of the internet in `namespaces.ts`; `internet.ts` has the names. */

import { HOST_END, INTERNET_END, NETWORKS } from "../internet/plan.ts";

/** Two networks of that internet, for policies that allow one of them and not the other. */
export const { first: FIRST, second: SECOND } = NETWORKS;
/** Both ends of the link between the node and the internet. */
export const NODE = HOST_END;
export const BORDER = INTERNET_END;

/** Addresses in `FIRST`. No name leads to them. */
export const FAR = "198.51.100.7";
export const ELSEWHERE = "198.51.100.66";

/** Addresses in `SECOND`. */
export const UNNAMED = "198.51.100.137";
export const ALLOWED = "198.51.100.138";
export const WWW = "198.51.100.139";
export const OTHER = "198.51.100.148";
/** The proxy connects to this address for a name that does not exist. */
export const BEHIND_PROXY = "198.51.100.158";
export const RESOLVER = "198.51.100.181";
export const PROXY = "198.51.100.187";
export const DEAD = "198.51.100.190";
