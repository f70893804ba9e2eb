import { describe, expect, test } from "vitest";
import { planNetwork } from "../../../../agent/network/addresses.ts";
import { changeCommand, type SlotPolicy, tableText } from "../../../../agent/network/firewall-rules.ts";
import { type LastRead, readFlows, readUnlogged } from "../../../../agent/network/kernel-flows.ts";
import { readSets } from "../../../../agent/network/nft/nft-json.ts";
import { routingRules } from "../../../../agent/network/routing.ts";
import { missingElements } from "../../../../agent/network/table-check.ts";
import { CLOSED, kernelPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { ALWAYS_DENIED, addressNumber, mergeRanges, parseRange, type Range } from "../../../../shared/policy/ranges.ts";

const plan = planNetwork("svc", "10.213.0.0/16");
const options = { egressPort: 5050, connections: 7 };
const at = (n: number, more: Partial<SlotPolicy> = {}): SlotPolicy => ({
  link: `svc-${n}`,
  address: `10.213.0.${n}`,
  open: true,
  policy: kernelPolicy(OPEN),
  ...more,
});
const open = at(2);
const closed: SlotPolicy = { link: "svc-3", address: "10.213.0.3", open: false };
const listed = at(4, { policy: kernelPolicy({ ...CLOSED, allowRanges: ["203.0.113.7/32", "198.51.100.0/24"] }) });
const named = at(5, { policy: kernelPolicy({ ...CLOSED, allowDomains: ["example.com"] }) });
const proxied = at(6, { policy: kernelPolicy({ ...OPEN, proxy: { host: "proxy.example", port: 1080 } }) });

// The list needs no entry for the test's own subnet, which is within 10.0.0.0/8.
const DENIED =
  "{ 0.0.0.0-0.255.255.255, 10.0.0.0-10.255.255.255, 100.64.0.0-100.127.255.255, 127.0.0.0-127.255.255.255, 168.63.129.16, 169.254.0.0-169.254.255.255, 172.16.0.0-172.31.255.255, 192.0.0.0-192.0.0.255, 192.168.0.0-192.168.255.255, 198.18.0.0-198.19.255.255, 224.0.0.0-255.255.255.255 }";

function chain(text: string, name: string): string[] {
  const body = new RegExp(`chain ${name} \\{\\n([^}]*(?:\\{[^}]*\\}[^}]*)*?)\\n {2}\\}`).exec(text)?.[1] ?? "";
  return body.split("\n").map((line) => line.trim());
}

describe("the table", () => {
  const text = tableText(plan, [open, closed], options);
  const arrival =
    "ct state new ct status & confirmed == 0 update @arrivals { ip saddr limit rate over 250/second burst 5000 packets }";

  test("is replaced in one transaction", () => {
    expect(text.startsWith("add table inet svc\ndelete table inet svc\ntable inet svc {")).toBe(true);
  });

  test("names each slot as elements only: its rules do not grow with the sandboxes", () => {
    const rules = (slots: number) =>
      tableText(
        plan,
        Array.from({ length: slots }, (_, index) => ({ ...listed, link: `svc-${index + 2}` })),
        options,
      ).split("\n").length;
    expect(rules(200)).toBe(rules(1));
  });

  test("lets an open sandbox reach the node's proxy, and only where there is one", () => {
    const rule = "ip daddr 10.213.0.1 tcp dport 5050 iifname @open accept";
    expect(chain(text, "local")).not.toContain(rule);
    const lines = chain(tableText(plan, [open, closed], { ...options, proxy: true }), "local");
    expect(lines.slice(-2)).toEqual([rule, "drop"]);
  });

  test("pins every slot and opens the open ones", () => {
    expect(text).toContain('elements = { "svc-2" . 10.213.0.2, "svc-3" . 10.213.0.3 }');
    expect(text).toContain('elements = { "svc-2" }');
  });

  test("decides about a sandbox's packets in this order, and applies the policy before connection tracking", () => {
    expect(chain(text, "out")).toEqual([
      "meta nfproto != ipv4 drop",
      "iifname . ip saddr != @pinned drop",
      'oifname "svc-*" drop',
      "iifname != @open drop",
      "meta l4proto != { tcp, udp } drop",
      `ip daddr ${DENIED} goto silence`,
      "th dport { 53, 853 } goto silence",
      "iifname @redirected goto refuse",
      "iifname @free goto pass",
      "ip saddr . ip daddr @allowed goto pass",
      "goto refuse",
    ]);
    expect(chain(text, "pass")).toEqual([
      "ct state established,related accept",
      "ct state invalid drop",
      "add @connections { ip saddr ct count over 7 } goto crowd",
      `${arrival} goto crowd`,
      "jump tell_granted",
      "accept",
    ]);
  });

  test("asks the policy before the routing, and takes TCP of redirected links to the egress process, except denied ranges and DNS", () => {
    expect(chain(text, "arriving")).toEqual([
      "meta nfproto != ipv4 return",
      "iifname . ip saddr != @pinned return",
      "iifname != @open return",
      "meta l4proto != { tcp, udp } return",
      "iifname @diverted meta l4proto tcp socket transparent 1 meta mark set meta mark | 0x30000000 accept",
      "fib daddr type { local, broadcast, multicast } return",
      "iifname @redirected meta l4proto tcp jump hand_over",
      `ip daddr ${DENIED} goto silence`,
      "th dport { 53, 853 } goto silence",
      "iifname @redirected goto refuse",
      "iifname @free goto permit",
      "ip saddr . ip daddr @allowed goto permit",
      "goto refuse",
    ]);
    expect(chain(text, "hand_over")).toEqual([
      "tcp dport { 53, 853 } return",
      `iifname != @tunnelled ip daddr ${DENIED} return`,
      "meta l4proto tcp tproxy ip to 10.213.0.1:5050 meta mark set meta mark | 0x30000000 accept",
    ]);
    expect(chain(text, "permit")).toEqual(["meta mark set meta mark | 0x10000000"]);
  });

  test("lets a sandbox speak to the host for replies, names and redirected connections only", () => {
    expect(chain(text, "local")).toEqual([
      "meta nfproto != ipv4 drop",
      "iifname . ip saddr != @pinned drop",
      `${arrival} drop`,
      "meta mark & 0x20000000 == 0x20000000 iifname @open accept",
      "ct direction reply ct state established accept",
      "ip daddr 10.213.0.1 meta l4proto { tcp, udp } th dport 53 iifname @open accept",
      "drop",
    ]);
  });

  test("lets in only what the policy would let out", () => {
    expect(chain(text, "into")).toEqual([
      "ct state != { established, related } drop",
      "oifname != @open drop",
      "ip protocol icmp accept",
      "oifname @redirected drop",
      `ip saddr ${DENIED} drop`,
      "oifname @free accept",
      "ip daddr . ip saddr @allowed accept",
      "drop",
    ]);
  });

  test("the ranges that are always denied, and its own subnet, are denied in the rules themselves", () => {
    const far = tableText(planNetwork("svc", "203.0.113.0/24"), [], options);
    expect(far).toContain(DENIED.replace("224.0.0.0", "203.0.113.0-203.0.113.255, 224.0.0.0"));
    const numbers = DENIED.slice(2, -2)
      .split(", ")
      .map((range) => range.split("-").map((one) => addressNumber(one) ?? 0));
    const merged = mergeRanges(ALWAYS_DENIED.map((range) => parseRange(range) as Range));
    expect(numbers).toEqual(merged.map(({ first, last }) => (first === last ? [first] : [first, last])));
    expect(far).not.toContain("@denied");
  });

  test("without slots has empty sets", () => {
    expect(tableText(plan, [], options)).not.toContain('"svc-2"');
    expect(tableText(plan, [], options)).not.toContain("elements = {  }");
  });
});

describe("a change is one line", () => {
  const add = (set: string, element: string) => `add element inet svc ${set} { ${element} }`;
  const remove = (set: string, element: string) => `delete element inet svc ${set} { ${element} }`;
  const pinned: SlotPolicy = { link: "svc-2", address: "10.213.0.2", open: false };
  test.each<[string, SlotPolicy | undefined, SlotPolicy | undefined, string | undefined]>([
    ["pin", undefined, pinned, add("pinned", '"svc-2" . 10.213.0.2')],
    ["open without lists: two elements", pinned, open, `${add("open", '"svc-2"')}; ${add("free", '"svc-2"')}`],
    ["close", open, { ...open, open: false }, remove("open", '"svc-2"')],
    [
      "forget",
      open,
      undefined,
      `${remove("pinned", '"svc-2" . 10.213.0.2')}; ${remove("open", '"svc-2"')}; ${remove("free", '"svc-2"')}`,
    ],
    ["nothing to do", open, open, undefined],
    [
      "lists",
      at(4),
      listed,
      [
        remove("free", '"svc-4"'),
        add("allowed", "10.213.0.4 . 198.51.100.0-198.51.100.255, 10.213.0.4 . 203.0.113.7"),
      ].join("; "),
    ],
    [
      "what is denied is what is not allowed",
      at(4),
      at(4, { policy: kernelPolicy({ ...OPEN, denyRanges: ["203.0.113.0/24"], allowRanges: ["203.0.113.7/32"] }) }),
      [
        remove("free", '"svc-4"'),
        add(
          "allowed",
          "10.213.0.4 . 0.0.0.0-203.0.112.255, 10.213.0.4 . 203.0.113.7, 10.213.0.4 . 203.0.114.0-255.255.255.255",
        ),
      ].join("; "),
    ],
    ["redirected", at(5), named, `${add("redirected", '"svc-5"')}; ${remove("free", '"svc-5"')}`],
    [
      "tunnelled",
      at(6),
      proxied,
      `${add("redirected", '"svc-6"')}; ${add("tunnelled", '"svc-6"')}; ${remove("free", '"svc-6"')}`,
    ],
    [
      "no longer redirected: what was taken stays with the egress process",
      named,
      at(5, { wasRedirected: true }),
      `${remove("redirected", '"svc-5"')}; ${add("diverted", '"svc-5"')}; ${add("free", '"svc-5"')}`,
    ],
    [
      "only what differs",
      listed,
      { ...listed, policy: kernelPolicy({ ...CLOSED, allowRanges: ["203.0.113.7/32"] }) },
      remove("allowed", "10.213.0.4 . 198.51.100.0-198.51.100.255"),
    ],
  ])("%s", (_name, before, after, command) => {
    expect(changeCommand(plan, before, after)).toBe(command);
  });
});

/** A set as `nft -j` prints it. */
const printed = (name: string, elem: readonly unknown[] = []) => ({
  set: { family: "inet", name, table: "svc", type: "ifname", handle: 1, ...(elem.length === 0 ? {} : { elem }) },
});
const answer = (...sets: readonly unknown[]) =>
  JSON.stringify({ nftables: [{ metainfo: { version: "1.0.6", json_schema_version: 1 } }, ...sets] });

describe("what nft prints", () => {
  const sets = (allowed: readonly unknown[], more: readonly unknown[] = []) =>
    answer(
      { table: { family: "inet", name: "svc", handle: 1 } },
      printed("pinned", [{ concat: ["svc-4", "10.213.0.4"] }, ...more]),
      printed("open", ["svc-4"]),
      ...["redirected", "tunnelled", "diverted", "free"].map((name) => printed(name)),
      printed("allowed", allowed),
    );
  const prefix = { concat: ["10.213.0.4", { prefix: { addr: "198.51.100.0", len: 24 } }] };
  const single = { concat: ["10.213.0.4", "203.0.113.7"] };

  test("is compared element by element", () => {
    expect(missingElements(sets([prefix, single]), [listed])).toBe(false);
    expect(missingElements(sets([single]), [listed])).toBe(true);
    expect(missingElements(sets([prefix, single, { concat: ["10.213.0.4", "8.8.8.8"] }]), [listed])).toBe(true);
    expect(missingElements(sets([prefix, single], [{ concat: ["svc-9", "10.213.0.9"] }]), [listed])).toBe(true);
    expect(
      missingElements(sets([prefix, { concat: ["10.213.0.4", { range: ["1.0.0.0", "2.0.0.2"] }] }]), [listed]),
    ).toBe(true);
    expect(missingElements("", [listed])).toBeUndefined();
    expect(missingElements("Error: No such file or directory", [])).toBeUndefined();
    expect(missingElements(sets([prefix, single]), [listed, open])).toBe(true);
  });

  test("of ranges is read in the form that commands use, whether the range is a prefix or not", () => {
    const parts = readSets(
      answer(printed("allowed", [prefix, single, { concat: ["a", { range: ["1.0.0.0", "2.0.0.2"] }] }])),
    ).get("allowed");
    expect(parts?.map((element) => element.parts.join(" . "))).toEqual([
      "10.213.0.4 . 198.51.100.0-198.51.100.255",
      "10.213.0.4 . 203.0.113.7",
      "a . 1.0.0.0-2.0.0.2",
    ]);
  });

  const logged = (concat: readonly unknown[], packets: number, expires: number) => ({
    elem: { val: { concat }, timeout: 10, expires, counter: { packets, bytes: 120 } },
  });

  test("of the log is reported once, and again when its count grew or the element was recreated", () => {
    const lastReads = new Map<string, LastRead>();
    const text = (packets: number, left = 9) =>
      answer(
        printed("denials", [
          logged(["10.213.0.2", "203.0.113.7", "tcp", 80], packets, left),
          logged(["10.213.0.3", "203.0.113.7", "udp", 9], 1, 1),
        ]),
      );
    expect(readFlows([["denials", text(2)]], lastReads)).toEqual([
      { source: "10.213.0.2", address: "203.0.113.7", protocol: "tcp", port: 80, outcome: "denied", count: 2 },
      { source: "10.213.0.3", address: "203.0.113.7", protocol: "udp", port: 9, outcome: "denied", count: 1 },
    ]);
    expect(readFlows([["denials", text(2)]], lastReads)).toEqual([]);
    expect(readFlows([["denials", text(5)]], lastReads)).toMatchObject([{ count: 3 }]);
    expect(readFlows([["denials", text(1)]], lastReads)).toMatchObject([{ count: 1 }]);
    expect(readFlows([["denials", text(1, 2)]], lastReads)).toEqual([]);
    // The flow ended and began again between two readings.
    expect(readFlows([["denials", text(1, 9)]], lastReads)).toMatchObject([{ count: 1 }]);
    expect(readFlows([["denials", answer(printed("denials"))]], lastReads)).toEqual([]);
    expect(readFlows([["denials", text(1)]], lastReads)).toHaveLength(2);
  });

  test("of packets that were not logged is counted by source", () => {
    const lastReads = new Map<string, LastRead>();
    const element = { elem: { val: "10.213.0.2", timeout: 3600, expires: 3599, counter: { packets: 12, bytes: 720 } } };
    const text = answer(printed("unlogged", [element]));
    expect([...readUnlogged(text, lastReads)]).toEqual([["10.213.0.2", 12]]);
    expect([...readUnlogged(text, lastReads)]).toEqual([]);
  });
});

test("without the table's mark a sandbox's packet is not forwarded", () => {
  expect(routingRules(plan).map(({ shown }) => shown)).toEqual([
    "7002: from 10.213.0.0/16 fwmark 0x20000000/0x20000000 lookup 1544213760",
    "7000: from 10.213.0.0/16 iif lo goto 7002",
    "7001: from 10.213.0.0/16 fwmark 0/0x10000000 blackhole",
  ]);
});
