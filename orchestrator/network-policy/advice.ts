/** What to write in place of an entry that is no destination, as a clause for the refusal. Pure. */

import { hostName } from "../../shared/policy/names.ts";
import { addressNumber } from "../../shared/policy/ranges.ts";
import { readDestination, readDomain } from "./destinations.ts";
import { quoted } from "./refuse.ts";

const PARTS = "entries have no scheme, port or path";
const NUMBERS = "an address is four numbers of 0 to 255 without leading zeros, and a range ends in /0 to /32";
const WILDCARD = "'*' stands alone, or in front as in '*.example.com'";

/** For an entry of `allowOut` that `readDestination` does not read. Undefined: nothing is known about it. */
export function adviceOnAllowed(text: string): string | undefined {
  const meant = meantBy(text);
  if (meant !== undefined && readDestination(meant) !== undefined) return `${reasonOf(text)}write ${quoted(meant)}`;
  if (/^[\d.]+(\/\d*)?$/.test(text)) return NUMBERS;
  return text.includes("*") ? WILDCARD : undefined;
}

/** For a name that `readDomain` does not read, as a key of `rules`. */
export function adviceOnHost(text: string): string | undefined {
  const meant = meantBy(text);
  return meant !== undefined && readDomain(meant) !== undefined ? `write ${quoted(meant)}` : undefined;
}

/** For a text that is no destination to ask about: one name, or one address. */
export function adviceOnAsked(text: string): string | undefined {
  const meant = meantBy(text);
  if (meant === undefined) return undefined;
  return (hostName(meant) ?? addressNumber(meant)) === undefined ? undefined : `write ${quoted(meant)}`;
}

/** The name or address in a URL, in `host:port`, with spaces around it, or behind the dot that stands for all names below. */
function meantBy(text: string): string | undefined {
  const bare = text.trim().replace(/^[a-z][a-z0-9+.-]*:\/\//i, "");
  // What follows an address is a prefix that was refused.
  const host = bare === text.trim() && /^[\d.]+\//.test(bare) ? bare : bare.replace(/[/?#].*$/s, "");
  // An address of IPv6, or nothing that is known.
  if (/:.*:/.test(host)) return undefined;
  const name = host.replace(/:\d{1,5}$/, "").replace(/^\.(?=[^.])/, "*.");
  return name === text || name === "" ? undefined : name;
}

function reasonOf(text: string): string {
  return /[:?#]|[^\d.\s]\//.test(text) ? `${PARTS}: ` : "";
}
