/** Rules of the network as the form has them, and as the API takes them. Values of headers that may be secrets stay out of the form. Pure. */

import type { NetworkOptions } from "../../../../shared/api/network.ts";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { isOpenHeader } from "../../base/without-secrets.ts";

export interface EditedHeader {
  readonly name: string;
  /** What is shown and typed. */
  readonly value: string;
  /** The stored value, which is not shown; it stays where nothing is typed. */
  readonly kept?: string;
}

export interface EditedRule {
  readonly host: string;
  readonly allowPlainHttp: boolean;
  readonly headers: readonly EditedHeader[];
}

export interface EditedPolicy {
  /** A line each. */
  readonly allow: string;
  readonly deny: string;
  /** Only what `allow` names can be reached. */
  readonly isClosed: boolean;
  readonly rules: readonly EditedRule[];
}

type Stored = Pick<SandboxDetail, "network" | "allowInternetAccess">;
type NewRules = NonNullable<NetworkOptions["rules"]>;
type Update = Pick<NetworkOptions, "allowOut" | "denyOut" | "rules"> & { readonly allow_internet_access?: boolean };

export const NEW_RULE: EditedRule = { host: "", allowPlainHttp: false, headers: [{ name: "", value: "" }] };

export function editedOf({ network = {}, allowInternetAccess }: Stored): EditedPolicy {
  return {
    allow: (network.allowOut ?? []).join("\n"),
    deny: (network.denyOut ?? []).join("\n"),
    isClosed: allowInternetAccess === false,
    rules: Object.entries(network.rules ?? {}).map(([host, [rule]]) => ({
      host,
      allowPlainHttp: rule?.transform?.allowPlainHttp === true,
      headers: Object.entries(rule?.transform?.headers ?? {}).map(([name, value]) =>
        isOpenHeader(value) ? { name, value } : { name, value: "", kept: value },
      ),
    })),
  };
}

/**
 * The update that replaces all that was there: whatever the form does not show goes with it, so that nothing is opened by the way.
 * @throws {Error} where two rules or headers would be one
 */
export function updateOf({ allow, deny, isClosed, rules }: EditedPolicy, before: Stored): Update {
  const internet = isClosed ? false : before.allowInternetAccess === true ? true : undefined;
  const hosts = new Set<string>();
  const entries = rules.map((rule) => {
    const host = rule.host.trim().toLowerCase();
    if (host === "") throw new Error("A rule has no host: name one, or remove the rule.");
    if (hosts.has(host)) throw new Error(`The host ${host} has two rules: put their headers into one.`);
    hosts.add(host);
    const plain = rule.allowPlainHttp ? { allowPlainHttp: true } : {};
    const transform = { headers: headersOf(host, rule.headers), ...plain };
    return [host, [{ transform }]] satisfies [string, NewRules[string]];
  });
  return {
    allowOut: words(allow),
    denyOut: words(deny),
    ...(entries.length === 0 ? {} : { rules: Object.fromEntries(entries) }),
    ...(internet === undefined ? {} : { allow_internet_access: internet }),
  };
}

function headersOf(host: string, headers: readonly EditedHeader[]): Record<string, string> {
  const found = new Map<string, string>();
  const lower = new Set<string>();
  for (const { name: typed, value, kept } of headers) {
    const name = typed.trim();
    if (name === "") continue;
    if (lower.has(name.toLowerCase())) throw new Error(`The rule of ${host} sets the header ${name} twice.`);
    lower.add(name.toLowerCase());
    found.set(name, value === "" ? (kept ?? "") : value.trim());
  }
  return Object.fromEntries(found);
}

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}
