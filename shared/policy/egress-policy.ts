/** The egress policy of one sandbox, in the one form that every enforcing part reads. */

import { type Static, Type } from "typebox";
import { LAST_ADDRESS, mergeRanges, otherRanges, parseRange, type Range } from "./ranges.ts";

const closed = { additionalProperties: false } as const;
const ranges = Type.Array(Type.String({ pattern: "^[0-9.]+/[0-9]+$" }));

/** IPv4 only: sandboxes have no IPv6, so policies omit its ranges. */
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
          /** Absent: requests without TLS that need the value of a placeholder are refused. */
          allowPlainHttp: Type.Optional(Type.Boolean()),
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

/** The internet, except ranges that are always denied. */
export const OPEN: EgressPolicy = { allowRanges: [], allowDomains: [], denyRanges: [], rules: [] };
/** No destination at all. */
export const CLOSED: EgressPolicy = { ...OPEN, denyRanges: ["0.0.0.0/0"] };
export const EVERYTHING = "0.0.0.0/0";

/** The kernel's share of a policy: only permissions, so that the kernel refuses traffic whose permission is lost. */
export interface KernelPolicy {
  /** TCP goes to the egress process, and no UDP leaves. */
  readonly redirected: boolean;
  /** TCP to always-denied ranges goes there too: these ranges may exist behind the proxy. */
  readonly tunnelled: boolean;
  /** Every address is allowed, except those that are always denied. */
  readonly free: boolean;
  /** Allowed ranges, disjoint; empty where it is free, and where it is redirected, because then the egress process decides. */
  readonly allowed: readonly Range[];
}

export function kernelPolicy(policy: EgressPolicy): KernelPolicy {
  const redirected = needsEgressProcess(policy);
  const allowed = mergeRanges([...disjoint(policy.allowRanges), ...otherRanges(disjoint(policy.denyRanges))]);
  const free = !redirected && isEverything(allowed);
  return { redirected, tunnelled: policy.proxy !== undefined, free, allowed: redirected || free ? [] : allowed };
}

export function needsEgressProcess({ allowDomains, rules, proxy }: EgressPolicy): boolean {
  return allowDomains.length > 0 || rules.length > 0 || proxy !== undefined;
}

/** Whether it allows any destination at all. */
export function allowsAnything(policy: EgressPolicy): boolean {
  const { redirected, free, allowed } = kernelPolicy(policy);
  return redirected || free || allowed.length > 0;
}

/** Names outside `allowDomains` are not even resolved: a query is a message to the owner of the zone. */
export function onlyListedNames({ allowRanges, denyRanges }: EgressPolicy): boolean {
  return coversAll(denyRanges) && !coversAll(allowRanges);
}

function coversAll(texts: readonly string[]): boolean {
  return isEverything(disjoint(texts));
}

function isEverything([all]: readonly Range[]): boolean {
  return all !== undefined && all.first === 0 && all.last === LAST_ADDRESS;
}

function disjoint(texts: readonly string[]): readonly Range[] {
  return mergeRanges(texts.map((text) => parseRange(text)).filter((range) => range !== undefined));
}
