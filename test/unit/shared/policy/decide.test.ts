/** The order in which a policy decides, case by case. */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allowedByName, type ConnectionRequest, decide, decideName } from "../../../../shared/policy/decide.ts";
import {
  CLOSED,
  type EgressPolicy,
  kernelPolicy,
  OPEN,
  onlyListedNames,
} from "../../../../shared/policy/egress-policy.ts";
import { addressText, alwaysDenied, contains } from "../../../../shared/policy/ranges.ts";

const proxy = { host: "203.0.113.99", port: 1080 };
const tcp = (address: string, port: number, hostname?: string): ConnectionRequest => ({
  address,
  port,
  protocol: "tcp",
  ...(hostname === undefined ? {} : { hostname }),
});
const udp = (address: string, port: number): ConnectionRequest => ({ address, port, protocol: "udp" });
const closed = (more: Partial<EgressPolicy>): EgressPolicy => ({ ...CLOSED, ...more });
const open = (more: Partial<EgressPolicy>): EgressPolicy => ({ ...OPEN, ...more });
const names = closed({ allowDomains: ["allowed.test", "*.wild.test"] });
const everything = open({ allowRanges: ["0.0.0.0/0"], allowDomains: ["*"] });
const rule = (host: string) => ({ host, headers: {} });

const A = "203.0.113.10";
const cases: [string, ConnectionRequest, EgressPolicy, object][] = [
  ["open", tcp(A, 443), OPEN, { verdict: "allow", rule: "default", dial: "address" }],
  ["open, UDP", udp(A, 4000), OPEN, { verdict: "allow", rule: "default" }],
  // Documentation ranges are ordinary addresses. Some machines use this range themselves, so no test sends a packet to it.
  ["open, 192.0.2.0/24", tcp("192.0.2.7", 443), OPEN, { verdict: "allow", rule: "default", dial: "address" }],
  ["closed, 192.0.2.0/24", udp("192.0.2.7", 4000), CLOSED, { verdict: "deny", rule: "denyOut 0.0.0.0/0" }],
  ["closed", tcp(A, 443), CLOSED, { verdict: "deny", rule: "denyOut 0.0.0.0/0" }],
  ["closed, UDP", udp(A, 4000), CLOSED, { verdict: "deny", rule: "denyOut 0.0.0.0/0" }],
  // Step 1: ranges that are always denied come before everything else.
  ["private, all allowed", tcp("10.0.0.1", 443, "a.test"), everything, { verdict: "deny", rule: "always 10.0.0.0/8" }],
  ["metadata, all allowed", tcp("169.254.169.254", 80, "a.test"), everything, { rule: "always 169.254.0.0/16" }],
  ["metadata on a public address", tcp("168.63.129.16", 80), everything, { rule: "always 168.63.129.16/32" }],
  ["IPv6", tcp("::1", 80), everything, { verdict: "deny", rule: "always ipv6" }],
  ["IPv4 in IPv6", tcp("::ffff:203.0.113.10", 80), everything, { verdict: "deny", rule: "always ipv6" }],
  ["octal", tcp("0177.0.0.1", 80), everything, { verdict: "deny" }],
  ["number", tcp("2130706433", 80), everything, { verdict: "deny" }],
  ["names elsewhere", tcp(A, 53), everything, { verdict: "deny", rule: "always port 53" }],
  ["names elsewhere, UDP", udp(A, 53), open({ allowRanges: ["0.0.0.0/0"] }), { rule: "always port 53" }],
  ["names over TLS", tcp(A, 853), everything, { verdict: "deny", rule: "always port 853" }],
  // Step 2: names.
  ["a name", tcp(A, 443, "allowed.test"), names, { verdict: "allow", rule: "allowOut allowed.test", dial: "hostname" }],
  ["a name, HTTP", tcp(A, 80, "allowed.test"), names, { verdict: "allow", dial: "hostname" }],
  ["a wildcard", tcp(A, 443, "x.wild.test"), names, { rule: "allowOut *.wild.test", dial: "hostname" }],
  ["not the apex", tcp(A, 443, "wild.test"), names, { verdict: "deny" }],
  ["another name", tcp(A, 443, "badallowed.test"), names, { verdict: "deny", rule: "denyOut 0.0.0.0/0" }],
  ["no name", tcp(A, 443), names, { verdict: "deny" }],
  [
    "a name on another port",
    tcp(A, 8443, "allowed.test"),
    names,
    {
      verdict: "deny",
      reason:
        "an allowed name counts for TCP to ports 80 and 443 only: elsewhere the address decides, and it is denied",
    },
  ],
  [
    "a name that is not allowed on another port",
    tcp(A, 8443, "other.test"),
    names,
    { verdict: "deny", reason: "the address is denied, and nothing allows it" },
  ],
  [
    "a name before an address",
    tcp(A, 443, "allowed.test"),
    { ...names, allowRanges: [`${A}/32`] },
    { dial: "hostname" },
  ],
  ["UDP with names", udp(A, 443), { ...names, allowRanges: ["0.0.0.0/0"] }, { verdict: "deny", rule: "always udp" }],
  ["UDP with rules", udp(A, 443), open({ rules: [rule("a.test")] }), { rule: "always udp" }],
  ["UDP with a proxy", udp(A, 443), open({ proxy }), { rule: "always udp" }],
  // Steps 3 and 4: an allow entry beats a deny entry, however narrow that is.
  [
    "allowed and denied",
    tcp(A, 22),
    closed({ allowRanges: [`${A}/32`] }),
    { verdict: "allow", rule: `allowOut ${A}/32` },
  ],
  [
    "allow all, deny one",
    tcp(A, 22),
    open({ allowRanges: ["0.0.0.0/0"], denyRanges: [`${A}/32`] }),
    { verdict: "allow" },
  ],
  ["denied", tcp(A, 22), open({ denyRanges: ["203.0.113.0/24"] }), { verdict: "deny", rule: "denyOut 203.0.113.0/24" }],
  ["beside the denied", tcp("198.51.100.1", 22), open({ denyRanges: ["203.0.113.0/24"] }), { rule: "default" }],
  ["UDP allowed", udp(A, 4000), closed({ allowRanges: ["203.0.113.0/24"] }), { verdict: "allow" }],
  // The egress proxy.
  ["through the proxy", tcp(A, 22), open({ proxy }), { verdict: "allow", via: "egressProxy", dial: "address" }],
  ["private behind the proxy", tcp("10.0.0.1", 22), open({ proxy }), { verdict: "allow", via: "egressProxy" }],
  [
    "private, denied, behind it",
    tcp("10.0.0.1", 22),
    closed({ proxy }),
    { verdict: "deny", rule: "denyOut 0.0.0.0/0" },
  ],
  ["private UDP with a proxy", udp("10.0.0.1", 22), open({ proxy }), { verdict: "deny", rule: "always 10.0.0.0/8" }],
  ["names elsewhere, behind it", tcp(A, 53), open({ proxy }), { verdict: "deny", rule: "always port 53" }],
  // Rules that set headers.
  ["a rule", tcp(A, 443, "a.test"), open({ rules: [rule("a.test")] }), { dial: "hostname", transform: "a.test" }],
  ["a rule is no permission", tcp(A, 443, "a.test"), closed({ rules: [rule("a.test")] }), { verdict: "deny" }],
  [
    "an exact rule before a longer list",
    tcp(A, 80, "a.b.test"),
    open({ rules: [rule("*.test"), rule("*.b.test"), rule("a.b.test")] }),
    { transform: "a.b.test" },
  ],
  [
    "the longest wildcard",
    tcp(A, 443, "x.b.test"),
    open({ rules: [rule("*.test"), rule("*.b.test")] }),
    { transform: "*.b.test" },
  ],
];

describe("decide", () => {
  test.each(cases)("%s: the flow gets its verdict", (_, flow, policy, expected) =>
    expect(decide(flow, policy)).toMatchObject(expected),
  );

  test.each([
    ["a rule on another port", tcp(A, 8443, "a.test"), open({ rules: [rule("a.test")] })],
    ["a rule without a name", tcp(A, 443), open({ rules: [rule("*.test")] })],
    ["a rule where it is denied", tcp(A, 443, "a.test"), closed({ rules: [rule("a.test")] })],
  ])("%s sets nothing", (_, flow, policy) => expect(decide(flow, policy)).not.toHaveProperty("transform"));

  test("tells whether the name is what allows the flow", () => {
    expect(allowedByName(tcp(A, 443, "allowed.test"), names)).toBe(true);
    expect(allowedByName(tcp(A, 8443, "allowed.test"), names)).toBe(false);
    expect(allowedByName(tcp(A, 443), names)).toBe(false);
    expect(allowedByName(tcp(A, 443, "a.test"), open({ rules: [rule("a.test")] }))).toBe(false);
  });
});

describe("for all policies", () => {
  const address = fc.nat({ max: 2 ** 32 - 1 }).map(addressText);
  const range = fc.tuple(address, fc.nat({ max: 32 })).map(([a, bits]) => `${a}/${bits}`);
  const domain = fc.constantFrom("*", "a.test", "*.a.test", "b.a.test");
  const policies = fc
    .record({
      allowRanges: fc.array(range, { maxLength: 4 }),
      denyRanges: fc.array(fc.oneof(range, fc.constant("0.0.0.0/0")), { maxLength: 4 }),
      allowDomains: fc.array(domain, { maxLength: 3 }),
      rules: fc.array(domain.map(rule), { maxLength: 2 }),
      proxied: fc.boolean(),
    })
    .map(({ proxied, ...policy }): EgressPolicy => (proxied ? { ...policy, proxy } : policy));
  const flows = fc.record({
    address: fc.oneof(address, fc.constantFrom("10.1.1.1", "169.254.169.254", A)),
    port: fc.constantFrom(22, 53, 80, 443, 853, 8443),
    protocol: fc.constantFrom("tcp" as const, "udp" as const),
    hostname: fc.constantFrom("a.test", "b.a.test", "c.test"),
  });
  const number = (text: string) => text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);

  test("addresses that are always denied are never dialled by the node", () => {
    fc.assert(
      fc.property(flows, policies, (flow, policy) => {
        const { verdict, via } = decide(flow, policy);
        if (alwaysDenied(number(flow.address)) !== undefined && verdict === "allow") expect(via).toBe("egressProxy");
      }),
    );
  });

  test("with a proxy, everything that is allowed goes through it", () => {
    fc.assert(
      fc.property(flows, policies, (flow, policy) => {
        const { verdict, via } = decide(flow, policy);
        expect(via === "egressProxy").toBe(verdict === "allow" && policy.proxy !== undefined);
      }),
    );
  });

  test("another allowed entry never denies a flow, except that an allowed name turns UDP off", () => {
    fc.assert(
      fc.property(flows, policies, range, (flow, policy, more) => {
        if (decide(flow, policy).verdict === "deny") return;
        expect(decide(flow, { ...policy, allowRanges: [...policy.allowRanges, more] }).verdict).toBe("allow");
        if (flow.protocol === "udp") return;
        expect(decide(flow, { ...policy, allowDomains: [...policy.allowDomains, "x.test"] }).verdict).toBe("allow");
      }),
    );
  });

  test("the kernel's sets decide as the function does", () => {
    const lists = policies.map(({ allowRanges, denyRanges }) => open({ allowRanges, denyRanges }));
    fc.assert(
      fc.property(flows, lists, (flow, policy) => {
        const { redirected, free, allowed } = kernelPolicy(policy);
        expect(redirected).toBe(false);
        const at = number(flow.address);
        const kernel =
          alwaysDenied(at) === undefined &&
          ![53, 853].includes(flow.port) &&
          (free || allowed.some((range) => contains(range, at)));
        expect(decide(flow, policy).verdict).toBe(kernel ? "allow" : "deny");
      }),
    );
  });
});

describe("names that may be resolved", () => {
  test.each([
    ["everything is open", OPEN, "x.test", "allow"],
    ["one range is denied", open({ denyRanges: ["203.0.113.0/24"] }), "x.test", "allow"],
    ["everything is denied", CLOSED, "x.test", "deny"],
    ["everything is denied in halves", open({ denyRanges: ["0.0.0.0/1", "128.0.0.0/1"] }), "x.test", "deny"],
    ["a listed one", names, "allowed.test", "allow"],
    ["below a wildcard", names, "a.b.wild.test", "allow"],
    ["the apex of a wildcard", names, "wild.test", "deny"],
    ["below an exact one", names, "www.allowed.test", "deny"],
    ["a rule is no permission", closed({ rules: [rule("a.test")] }), "a.test", "deny"],
  ])("%s: the name gets its verdict", (_, policy, name, verdict) =>
    expect(decideName(name, policy).verdict).toBe(verdict),
  );

  test("only an entry that denies everything restricts them", () => {
    expect(onlyListedNames(open({ denyRanges: ["0.0.0.0/1", "128.0.0.0/2"] }))).toBe(false);
    expect(onlyListedNames(OPEN)).toBe(false);
    // Allow beats deny, so these options close nothing.
    expect(onlyListedNames(open({ denyRanges: ["0.0.0.0/0"], allowRanges: ["0.0.0.0/1", "128.0.0.0/1"] }))).toBe(false);
    expect(onlyListedNames(open({ denyRanges: ["0.0.0.0/0"], allowRanges: ["8.8.8.8/32"] }))).toBe(true);
  });
});
