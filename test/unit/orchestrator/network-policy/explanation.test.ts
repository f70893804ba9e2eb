import { expect, test } from "vitest";
import { explanation } from "../../../../orchestrator/network-policy/explanation.ts";

const dns = { protocol: "dns", name: "pypi.org", recordType: "A", address: "", port: 53 } as const;
const tcp = { protocol: "tcp", name: "pypi.org", address: "203.0.113.1", port: 443 } as const;

test("what was allowed and worked needs no explanation", () => {
  expect(explanation({ ...tcp, verdict: "allow", rule: "default" })).toBeUndefined();
  expect(explanation({ ...tcp, verdict: "allow", rule: "allowOut failed.example" })).toBeUndefined();
});

test.each([
  ["failed NXDOMAIN", "does not exist"],
  ["failed SERVFAIL", "could not resolve"],
  ["failed REFUSED", "refuses"],
  ["failed code 9", "(code 9)"],
  ["failed timeout", "SVC_DNS_UPSTREAM"],
  ["failed unreachable", "SVC_DNS_UPSTREAM"],
  ["failed no resolver", "SVC_DNS_UPSTREAM"],
])("a question with %s says what was wrong", (rule, text) => {
  expect(explanation({ ...dns, verdict: "allow", rule })).toContain(text);
});

test.each([
  ["denyOut 0.0.0.0/0", 'add "pypi.org" to allowOut'],
  ["always type 16", "only A, AAAA and CNAME"],
  ["always name", "cannot be a host name"],
  ["always 10.0.0.0/8", "leads to an address in 10.0.0.0/8"],
  ["limit questions", "more names"],
])("a question that is refused by %s says why and what to do", (rule, text) => {
  expect(explanation({ ...dns, verdict: "deny", rule })).toContain(text);
});

test.each([
  ["allow", "failed ECONNREFUSED", "nothing listens"],
  ["allow", "failed the destination did not answer in time", "did not answer in time"],
  ["allow", "failed the certificate of a.test is not trusted: x (CERT_X)", "the certificate of a.test is not trusted"],
  ["deny", "failed", "egress process was down"],
  ["deny", "denyOut 203.0.113.0/24", 'denyOut 203.0.113.0/24 forbids it, and nothing allows it: add "pypi.org"'],
  ["deny", "always 10.0.0.0/8", "whatever its policy says"],
  ["deny", "always node", "the node itself"],
  ["deny", "always port 53", "own resolver"],
  ["deny", "always udp", "only TCP leaves"],
  ["deny", "limit connections", "more connections"],
] as const)("a connection with %s %s says why and what to do", (verdict, rule, text) => {
  expect(explanation({ ...tcp, verdict, rule })).toContain(text);
});

const denied = { verdict: "deny", rule: "denyOut 0.0.0.0/0" } as const;
const { name: _, ...nameless } = tcp;

test.each([
  ["TLS without SNI", nameless, "where the program says it, by SNI or Host"],
  ["plain HTTP without Host", { ...nameless, port: 80 }, "where the program says it, by SNI or Host"],
  ["git over ssh", { ...nameless, port: 22 }, "on ports 80 and 443 only"],
  ["a port that was named to the node's proxy", { ...tcp, port: 8443 }, "on ports 80 and 443 only"],
])("of %s that is denied the address is to be allowed, and where names count is said", (_what, entry, where) => {
  const start = 'denyOut 0.0.0.0/0 forbids it, and nothing allows it: add "203.0.113.1" to allowOut';
  expect(explanation({ ...entry, ...denied })).toBe(`${start} (an allowed name counts ${where})`);
});

test("of a name on another port that has no address yet, and of UDP, the address is to be allowed", () => {
  expect(explanation({ ...tcp, ...denied, port: 8443, address: "" })).toContain("add the address to allowOut");
  expect(explanation({ ...nameless, ...denied, protocol: "udp", port: 123 })).toBe(
    'denyOut 0.0.0.0/0 forbids it, and nothing allows it: add "203.0.113.1" to allowOut',
  );
});
