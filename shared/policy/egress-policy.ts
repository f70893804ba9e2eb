/** Where one sandbox may speak to, in the one spelling that every enforcing part understands (design.md §7). */

import { type Static, Type } from "typebox";
import { addressText, mergeRanges, parseRange, type Range } from "./ranges.ts";

const closed = { additionalProperties: false } as const;
const ranges = Type.Array(Type.String({ pattern: "^[0-9.]+/[0-9]+$" }));

/** IPv4 only: IPv6 is off in sandboxes, and its ranges are left out where a policy is made. */
export const EgressPolicy = Type.Object(
  {
    allowRanges: ranges,
    /** `hostName` spelling; `*`, `*.x` or exact. */
    allowDomains: Type.Array(Type.String()),
    /** `allow_internet_access: false` is `0.0.0.0/0` here. */
    denyRanges: ranges,
    rules: Type.Array(
      Type.Object(
        {
          host: Type.String(),
          /** Set on every request to that host; values may hold placeholders, which are never resolved here. */
          headers: Type.Record(Type.String(), Type.String()),
        },
        closed,
      ),
    ),
    proxy: Type.Optional(
      Type.Object(
        {
          host: Type.String(),
          port: Type.Integer({ minimum: 1, maximum: 65_535 }),
          username: Type.Optional(Type.String()),
          password: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type EgressPolicy = Static<typeof EgressPolicy>;
export type EgressProxy = NonNullable<EgressPolicy["proxy"]>;

/** The internet, as far as it is not always denied. */
export const OPEN: EgressPolicy = { allowRanges: [], allowDomains: [], denyRanges: [], rules: [] };
/** Nothing at all. */
export const CLOSED: EgressPolicy = { ...OPEN, denyRanges: ["0.0.0.0/0"] };
export const EVERYTHING = "0.0.0.0/0";

/** What the kernel is told of a policy. */
export interface KernelPolicy {
  /** TCP goes to the egress process, and no UDP leaves. */
  readonly steered: boolean;
  /** TCP to always-denied ranges as well: they may exist behind the proxy. */
  readonly tunnelled: boolean;
  /** Disjoint; empty where steered, since then the egress process decides. */
  readonly allowed: readonly Range[];
  readonly refused: readonly Range[];
}

export function kernelPolicy(policy: EgressPolicy): KernelPolicy {
  const steered = needsEgressProcess(policy);
  return {
    steered,
    tunnelled: policy.proxy !== undefined,
    allowed: steered ? [] : disjoint(policy.allowRanges),
    refused: steered ? [] : disjoint(policy.denyRanges),
  };
}

export function needsEgressProcess({ allowDomains, rules, proxy }: EgressPolicy): boolean {
  return allowDomains.length > 0 || rules.length > 0 || proxy !== undefined;
}

/** Names outside `allowDomains` are not even resolved: a name is a message to whoever serves its zone. */
export function onlyListedNames({ allowRanges, denyRanges }: EgressPolicy): boolean {
  return isEverything(denyRanges) && !isEverything(allowRanges);
}

function isEverything(ranges: readonly string[]): boolean {
  const [all, ...more] = disjoint(ranges);
  return more.length === 0 && all !== undefined && addressText(all.first) === "0.0.0.0" && all.last === 2 ** 32 - 1;
}

function disjoint(texts: readonly string[]): readonly Range[] {
  return mergeRanges(texts.map((text) => parseRange(text)).filter((range) => range !== undefined));
}
