/** Which rule of the host ended a packet of the probe, read from what the kernel reports about traced packets. */

import { expect, test } from "vitest";
import { culpritsIn } from "../../../../agent/network/reach/trace.ts";

const PROBE = { table: "svc_probe", address: "10.213.255.255" };

/** The lines of one traced packet. */
function packet(id: string, address: string, protocol: "tcp" | "udp", end: string): string {
  return [
    `trace id ${id} inet svc_probe first packet: iif "svc-probe" ip saddr ${address} ip daddr 203.0.113.1 ip ttl 64 ${protocol} sport 4000 ${protocol} dport 443`,
    `trace id ${id} inet svc_probe first rule meta nftrace set 1 (verdict continue)`,
    `trace id ${id} ${end}`,
  ].join("\n");
}

test("the rule or the policy that ended a packet is named for each protocol", () => {
  const text = [
    packet("aa", PROBE.address, "tcp", 'inet site cut rule iifname "svc-*" drop (verdict drop)'),
    packet("ab", PROBE.address, "udp", "ip filter INPUT policy drop"),
  ].join("\n");
  expect(Object.fromEntries(culpritsIn(text, PROBE))).toMatchObject({
    tcp: {
      family: "inet",
      table: "site",
      chain: "cut",
      rule: 'iifname "svc-*" drop',
    },
    udp: { family: "ip", table: "filter", chain: "INPUT", rule: "policy drop" },
  });
});

test("packets that others trace at the same time name nothing, whatever ended them", () => {
  const own = packet("ba", PROBE.address, "tcp", "inet site cut rule drop (verdict drop)");
  const foreign = [
    packet("bb", "10.220.255.255", "tcp", "inet other_probe leaving rule counter drop (verdict drop)"),
    packet("bc", "10.213.255.25", "udp", "inet theirs in policy drop"),
  ].join("\n");
  expect([...culpritsIn(foreign, PROBE)]).toEqual([]);
  expect([...culpritsIn(`${own}\n${foreign}`, PROBE)].map(([protocol, { table }]) => [protocol, table])).toEqual([
    ["tcp", "site"],
  ]);
});

test("a packet that the probe's own table caught has come through", () => {
  const caught = packet("ca", PROBE.address, "tcp", "inet svc_probe leaving rule counter drop (verdict drop)");
  expect([...culpritsIn(caught, PROBE)]).toEqual([]);
});
