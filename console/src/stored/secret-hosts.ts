/** Which hosts get a secret, by the rules of sandboxes. Pure. */

import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

export interface SecretHost {
  readonly host: string;
  /** Names of the headers that have it. */
  readonly headers: readonly string[];
  /** Ids of the sandboxes whose rules say so. */
  readonly sandboxes: readonly string[];
}

type Ruled = Pick<SandboxDetail, "sandboxID" | "network">;

/** By name of the host. @param name of the secret, in lower case as the platform keeps it */
export function hostsOf(name: string, sandboxes: readonly Ruled[]): readonly SecretHost[] {
  const placeholders = ["e2b", "svc"].map((product) => `\${${product}.secrets.${name}}`);
  const found = new Map<string, { headers: Set<string>; sandboxes: Set<string> }>();
  for (const { sandboxID, network } of sandboxes)
    for (const [host, rules] of Object.entries(network?.rules ?? {}))
      for (const [header, value] of rules.flatMap(({ transform }) => Object.entries(transform?.headers ?? {}))) {
        // A placeholder names its secret in any case.
        if (!placeholders.some((each) => value.toLowerCase().includes(each))) continue;
        const of = found.get(host) ?? { headers: new Set(), sandboxes: new Set() };
        of.headers.add(header);
        of.sandboxes.add(sandboxID);
        found.set(host, of);
      }
  return [...found]
    .map(([host, of]) => ({ host, headers: [...of.headers], sandboxes: [...of.sandboxes] }))
    .sort((a, b) => (a.host < b.host ? -1 : 1));
}
