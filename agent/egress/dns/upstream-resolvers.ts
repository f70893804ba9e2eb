/** The resolvers that the node's forwarder asks: the configured ones, else the machine's, read again when they change. */

import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";

export interface UpstreamResolver {
  readonly host: string;
  readonly port: number;
}

const DNS_PORT = 53;

/** `host[:port],…` with IPv4 or [IPv6] literals. Throws on anything else. */
export function parseUpstreamResolvers(text: string): UpstreamResolver[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(part);
      const host = match?.[1] ?? match?.[2] ?? "";
      const port = Number(match?.[3] ?? DNS_PORT);
      if (isIP(host) === 0 || port < 1 || port > 65_535) throw new Error(`${part} is not an address of a resolver`);
      return { host, port };
    });
}

export function parseResolvConf(text: string): UpstreamResolver[] {
  const hosts = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => (match[1] ?? "").split("%", 1)[0] ?? "");
  return hosts.filter((host) => isIP(host) !== 0).map((host) => ({ host, port: DNS_PORT }));
}

/** The resolvers that `given` lists; if it is empty those of the file, which is read again when its time changes. */
export function upstreamResolvers(
  given: string,
  path = "/etc/resolv.conf",
): () => Promise<readonly UpstreamResolver[]> {
  const fixed = parseUpstreamResolvers(given);
  if (fixed.length > 0) return () => Promise.resolve(fixed);
  const seen = { at: -1, list: [] as readonly UpstreamResolver[] };
  return async () => {
    try {
      const { mtimeMs } = await stat(path);
      if (mtimeMs !== seen.at)
        Object.assign(seen, { at: mtimeMs, list: parseResolvConf(await readFile(path, "utf8")) });
    } catch {
      // The file is just being replaced: the resolvers of its last version stay.
    }
    return seen.list;
  };
}
