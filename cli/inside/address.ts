/** Where a port of a sandbox is reached: by one address with headers, or by a host of its own. Pure. */

import type { Settings } from "../api/settings.ts";
import { usage } from "../failure.ts";

export const ENVD_PORT = 49_983;

export interface Place {
  readonly url: string;
  /** How the edge finds the sandbox where the address does not say it. */
  readonly headers: Readonly<Record<string, string>>;
}

interface Port {
  readonly sandboxID: string;
  readonly port: number;
  /** The platform's base domain, as it says itself. */
  readonly domain: string | undefined;
}

type Where = Pick<Settings, "sandboxUrl" | "domain">;

export function placeOf(settings: Where, at: Port): Place {
  if (settings.sandboxUrl === undefined) return { url: hostOf(settings, at), headers: {} };
  return {
    url: settings.sandboxUrl,
    headers: { "e2b-sandbox-id": at.sandboxID, "e2b-sandbox-port": String(at.port) },
  };
}

/** `https://8000-ID.DOMAIN`; without TLS on the machine itself, and where the address of all sandboxes is without. */
export function hostOf({ sandboxUrl, domain: own }: Where, { sandboxID, port, domain: said }: Port): string {
  const domain = own ?? said;
  if (domain === undefined) {
    throw usage("the platform names no domain of its sandboxes", "set SVC_SANDBOX_URL, or E2B_DOMAIN");
  }
  const isPlain = sandboxUrl?.startsWith("http:") ?? /^localhost(:\d+)?$/.test(domain);
  return `${isPlain ? "http" : "https"}://${port}-${sandboxID}.${domain}`;
}
