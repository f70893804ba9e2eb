/** A port of a sandbox as a page of its own: on a host name of its own, never on the console's. Pure. */

interface Place {
  readonly sandboxID: string;
  readonly domain?: string | null | undefined;
}

/** Undefined where the platform has no domain. @param protocol `http:` or `https:`, that of the console */
export function portAddress({ sandboxID, domain }: Place, port: number, protocol: string): string | undefined {
  return typeof domain === "string" ? `${protocol}//${port}-${sandboxID}.${domain}` : undefined;
}
