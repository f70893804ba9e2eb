/** Checks the URL of a webhook when it is set. A name is resolved and checked at each delivery (send.ts). Pure. */

import { isIP } from "node:net";
import { AppError } from "../../shared/http/errors.ts";
import type { TargetAddresses } from "./addresses.ts";

const MAX_LENGTH = 2048;
const LOCAL_NAMES: readonly string[] = ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/**
 * The URL in the spelling in which it is stored. `URL` reads every spelling of an IPv4 address (decimal, octal, hexadecimal,
 * short, with a trailing dot) as its four numbers.
 * @throws {AppError} bad_request
 */
export function checkTarget(text: string, addresses: TargetAddresses): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:") || url.hostname === "") {
    throw refusal("must be an absolute URL of http or https");
  }
  if (url.username !== "" || url.password !== "") {
    throw refusal("must not have a user name or password: receivers check the signature");
  }
  if (url.hash !== "") throw refusal("must not have a fragment");
  if (url.href.length > MAX_LENGTH) throw refusal(`must not have more than ${MAX_LENGTH} characters`);
  const host = addressIn(url);
  if (host !== undefined && !addresses.allows(host)) {
    throw refusal(
      "must not be an address of the platform or of a private network; SVC_WEBHOOK_ALLOW may name its range",
    );
  }
  return url.href;
}

/** The address that a URL contains, or that its name always means. Undefined for other names. */
export function addressIn({ hostname }: URL): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) !== 0) return host;
  return LOCAL_NAMES.includes(host) || host.endsWith(".localhost") ? "127.0.0.1" : undefined;
}

function refusal(words: string): AppError {
  return new AppError("bad_request", `body field 'url' ${words}`);
}
