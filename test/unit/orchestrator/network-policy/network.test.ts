/** Network options: the reader refuses wrong ones with a reason, and turns the others into a policy. */

import { describe, expect, test } from "vitest";
import { readNetwork } from "../../../../orchestrator/network-policy/options.ts";
import { type DesiredNetwork, toPolicy } from "../../../../orchestrator/network-policy/policy.ts";
import { readAllowed } from "../../../../orchestrator/network-policy/proxy.ts";
import { openPassword, sealPassword, splitPassword } from "../../../../orchestrator/network-policy/secret.ts";
import { NetworkOptions } from "../../../../shared/api/network.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { check } from "../../../../shared/http/validate.ts";
import { CLOSED, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { ConfigError } from "../../../../shared/program/config.ts";
import { createSeal } from "../../../../shared/program/sealing/seal.ts";

const ALL = "0.0.0.0/0";
const schema = check(NetworkOptions, "body");

/** Reads network options as a create does: by the schema, then by the rules beyond it. */
function read(network: unknown, allow = ""): NetworkOptions {
  return readNetwork(schema.parse(network), undefined, { proxyRanges: readAllowed(allow) });
}

function refusal(network: unknown): string {
  try {
    read(network);
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_request") return error.message;
    throw error;
  }
  return "accepted";
}

function policy(network: NetworkOptions, more: Partial<DesiredNetwork> = {}) {
  const kept = splitPassword(read(network));
  return toPolicy({ ...kept, internet: undefined, ...more });
}

const header = (name: string, value: string) => ({
  rules: { "a.com": [{ transform: { headers: { [name]: value } } }] },
});

describe("the policy of", () => {
  test.each<[string, NetworkOptions, object]>([
    ["nothing", {}, OPEN],
    ["everything denied", { denyOut: [ALL] }, CLOSED],
    ["an address", { allowOut: ["8.8.8.8"], denyOut: [ALL] }, { allowRanges: ["8.8.8.8/32"], denyRanges: [ALL] }],
    ["a range with host bits", { denyOut: ["10.1.2.3/8"] }, { denyRanges: ["10.0.0.0/8"] }],
    [
      "the same range twice",
      { allowOut: [ALL, ALL], denyOut: ["1.2.3.4/0"] },
      { allowRanges: [ALL], denyRanges: [ALL] },
    ],
    ["IPv6 entries", { allowOut: ["::1", "2001:db8::/32"], denyOut: ["fc00::/7", "::/0"] }, {}],
    ["a private range", { allowOut: ["192.168.0.0/16"] }, { allowRanges: ["192.168.0.0/16"] }],
    [
      "domains in any spelling",
      { allowOut: ["Google.COM", "google.com.", "*.Bücher.example", "*"], denyOut: [ALL] },
      { allowDomains: ["google.com", "*.xn--bcher-kva.example", "*"], denyRanges: [ALL] },
    ],
    ["a rule that does nothing", { rules: { "a.com": [{}], "b.com": [] } }, {}],
    [
      "a rule without headers beside one with",
      { rules: { "API.a.com": [{}], "*.a.com": [{ transform: { headers: { "X-Key": "K" } } }] } },
      {
        rules: [
          { host: "api.a.com", headers: {} },
          { host: "*.a.com", headers: { "X-Key": "K" } },
        ],
      },
    ],
    [
      "a proxy",
      { egressProxy: { address: " Proxy.Example.com:1080 ", username: "u", password: "p" } },
      { proxy: { host: "proxy.example.com", port: 1080, username: "u", password: "p" } },
    ],
    ["no proxy", { egressProxy: null }, {}],
  ])("%s follows from the options", (_name, network, expected) => {
    expect(policy(network)).toEqual({ ...OPEN, ...expected });
  });

  test("internet false denies all addresses in place of the denied ones, and keeps the allowed entries", () => {
    const network = { allowOut: ["8.8.8.8"], denyOut: ["1.1.1.1"] };
    expect(policy(network, { internet: false })).toEqual({ ...CLOSED, allowRanges: ["8.8.8.8/32"] });
    expect(policy(network, { internet: true })).toEqual(policy(network));
  });
});

describe("what is kept", () => {
  test("is the request's options, with rule keys in lower case", () => {
    const network = {
      allowOut: ["Google.COM", "10.1.2.3/8"],
      denyOut: [ALL],
      rules: { "API.Example.com": [{ transform: { headers: { Authorization: "Bearer x" } } }] },
      maskRequestHost: "localhost:${PORT}",
    };
    const { rules, ...rest } = network;
    expect(read(network)).toEqual({ ...rest, rules: { "api.example.com": rules["API.Example.com"] } });
  });

  test("never includes the proxy's password, which is sealed for its own sandbox only", () => {
    const { network, proxyPassword } = splitPassword(
      read({ egressProxy: { address: "p.example:1", username: "u", password: "ü" } }),
    );
    expect(network).toEqual({ egressProxy: { address: "p.example:1", username: "u" } });
    const sealing = createSeal("a key", "the test");
    const sealed = sealPassword(sealing, proxyPassword, "i1");
    expect(sealed).not.toContain("ü");
    expect(openPassword(sealing, sealed, "i1")).toBe("ü");
    expect(() => openPassword(sealing, sealed, "i2")).toThrow("does not open");
    expect(openPassword(sealing, undefined, "i1")).toBeUndefined();
  });
});

const NUMBERS = "an address is four numbers of 0 to 255 without leading zeros, and a range ends in /0 to /32";
const WILDCARD = "'*' stands alone, or in front as in '*.example.com'";
const PARTS = "entries have no scheme, port or path";
const DOMAINS =
  "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.";

test.each<[object, string]>([
  [{ allowOut: ["example.com"] }, DOMAINS],
  [{ allowOut: ["example.com"], denyOut: ["1.1.1.1/32"] }, DOMAINS],
  [{ allowOut: ["*.example.com"] }, DOMAINS],
  [{ allowOut: ["*.example.com"], denyOut: ["10.0.0.0/8", "128.0.0.0/1"] }, DOMAINS],
  [{ allowOut: ["example.com", "8.8.8.8"], denyOut: ["1.1.1.1"] }, DOMAINS],
  [{ allowOut: ["*"], denyOut: ["::/0"] }, DOMAINS],
  [{ denyOut: ["example.com"] }, "invalid denied CIDR example.com"],
  [{ denyOut: [ALL, "example.com"] }, "invalid denied CIDR example.com"],
  [{ denyOut: ["*"] }, "invalid denied CIDR *"],
  [{ denyOut: ["https://example.com/"] }, "invalid denied CIDR https://example.com/"],
  [{ denyOut: ["example.com:443"] }, "invalid denied CIDR example.com:443"],
  [{ denyOut: ["1.1.1.1:53"] }, "invalid denied CIDR 1.1.1.1:53"],
  [{ denyOut: [" 10.0.0.0/8"] }, "invalid denied CIDR  10.0.0.0/8"],
  [{ denyOut: ["not an address"] }, "invalid denied CIDR not an address"],
  [{ denyOut: ["0.0.0.0"] }, "invalid denied CIDR 0.0.0.0"],
  [{ denyOut: ["::"] }, "invalid denied CIDR ::"],
  [{ denyOut: ["0:0::0/128"] }, "invalid denied CIDR 0:0::0/128"],
  [{ denyOut: ["10.0.0.0/33"] }, "invalid denied CIDR 10.0.0.0/33"],
  [{ denyOut: ["10.0.0.0/08"] }, "invalid denied CIDR 10.0.0.0/08"],
  [{ denyOut: ["10.0.0/8"] }, "invalid denied CIDR 10.0.0/8"],
  [{ denyOut: ["010.0.0.1"] }, "invalid denied CIDR 010.0.0.1"],
  [{ denyOut: ["fe80::1%eth0"] }, "invalid denied CIDR fe80::1%eth0"],
  [{ denyOut: ["fe80::/129"] }, "invalid denied CIDR fe80::/129"],
  ...(
    [
      ["exa mple.com", undefined],
      ["a..b", undefined],
      ["0x7f.1", undefined],
      ["2130706433", NUMBERS],
      ["127.1", NUMBERS],
      ["10.0.0.0/33", NUMBERS],
      ["http://a.com", `${PARTS}: write 'a.com'`],
      ["https://API.a.com:8443/v1?x=1#y", `${PARTS}: write 'API.a.com'`],
      ["a.com:443", `${PARTS}: write 'a.com'`],
      ["a.com/v1", `${PARTS}: write 'a.com'`],
      ["https://1.2.3.4/", `${PARTS}: write '1.2.3.4'`],
      ["*.a.com:443", `${PARTS}: write '*.a.com'`],
      [".a.com", "write '*.a.com'"],
      [" a.com\n", "write 'a.com'"],
      ["*.*.com", WILDCARD],
      ["a.*.com", WILDCARD],
      ["*a.com", WILDCARD],
      ["**", WILDCARD],
    ] as const
  ).map(([entry, advice]): [object, string] => [
    { allowOut: [entry], denyOut: [ALL] },
    `invalid allowed destination '${entry}': not an address, CIDR range or domain${advice === undefined ? "" : `; ${advice}`}`,
  ]),
  [
    { rules: { "https://a.com/v1": [{}] } },
    "invalid rule host 'https://a.com/v1': expected a DNS name or *.name; write 'a.com'",
  ],
  [{ rules: { "a.com:443": [{}] } }, "invalid rule host 'a.com:443': expected a DNS name or *.name; write 'a.com'"],
  [{ rules: { ".a.com": [{}] } }, "invalid rule host '.a.com': expected a DNS name or *.name; write '*.a.com'"],
  ...["*", "a.*.com", "*.", "1.2.3.4", "a b", "*a.com"].map((host): [object, string] => [
    { rules: { [host]: [{}] } },
    `invalid rule host '${host}': expected a DNS name or *.name`,
  ]),
  [{ rules: { "A.com": [{}], "a.com.": [{}] } }, "rule host 'a.com.' is given twice"],
  [header("Host", "b.com"), "rules of 'a.com' must not set the header 'Host'"],
  [header("content-length", "1"), "rules of 'a.com' must not set the header 'content-length'"],
  [header("Transfer-Encoding", "chunked"), "rules of 'a.com' must not set the header 'Transfer-Encoding'"],
  [header("Connection", "close"), "rules of 'a.com' must not set the header 'Connection'"],
  [header("x", "a\r\nb: c"), "rules of 'a.com': the value of header 'x' has characters that are not allowed"],
  [header("x", "a\u0000"), "rules of 'a.com': the value of header 'x' has characters that are not allowed"],
  ...[
    "${e2b.secrets.}",
    "${e2b.secrets.A",
    "${e2b.secret.A}",
    "${E2B.secrets.A}",
    "${ e2b.secrets.A}",
    "${e2b.secrets.a b}",
  ].map((value): [object, string] => [
    header("x", value),
    "rules of 'a.com': the value of header 'x' has a malformed placeholder",
  ]),
  [
    header("x", Array.from({ length: 33 }, (_, index) => `\${svc.secrets.n${index}}`).join("")),
    "rules of 'a.com' have placeholders of 33 names: at most 32 are allowed",
  ],
  [
    { rules: { "a.com": [{ transform: { headers: { A: "1", a: "2" } } }] } },
    "rules of 'a.com' set the header 'a' twice",
  ],
  [{ egressProxy: { address: "no-port" } }, "body field 'network.egressProxy.address' must be host:port"],
  ...["a:0", "a:65536", "a:1:2", "[::1]:1", "a b:1", "a\u0000.com:1", ":1080", "0x7f.1:1", "u@a:1"].map(
    (address): [object, string] => [
      { egressProxy: { address } },
      "body field 'network.egressProxy.address' must be host:port",
    ],
  ),
  ...["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "192.168.1.1", "168.63.129.16"].map(
    (host): [object, string] => [
      { egressProxy: { address: `${host}:1080` } },
      `body field 'network.egressProxy.address' must not be an internal address: '${host}'`,
    ],
  ),
  [
    { egressProxy: { address: "LocalHost:1080" } },
    "body field 'network.egressProxy.address' must not be an internal address: 'localhost'",
  ],
  [
    { egressProxy: { address: "p.com:1", password: "x" } },
    "body field 'network.egressProxy.password' requires a username",
  ],
  [
    { egressProxy: { address: "p.com:1", username: "ü".repeat(128) } },
    "body field 'network.egressProxy.username' must not have more than 255 bytes",
  ],
  [
    { egressProxy: { address: "p.com:1", username: "u", password: "a\u0000" } },
    "body field 'network.egressProxy.password' must not contain NUL",
  ],
  [{ httpsPorts: [443, 49_983] }, "body field 'network.httpsPorts' must not contain 49983"],
  ...["exämple.com", "a b", "a:0", "a:99999", "a:b", "${HOST}", "a/b", "a..b", "[x]:1"].map(
    (maskRequestHost): [object, string] => [
      { maskRequestHost },
      "body field 'network.maskRequestHost' must be host[:port] in ASCII, with an optional ${PORT} placeholder",
    ],
  ),
])("%j is refused", (network, message) => {
  expect(refusal(network)).toBe(message);
});

test.each<[object, string]>([
  [{ rules: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`h${i}.com`, [{}]])) }, "rules"],
  [{ rules: { "a.com": [{}, {}] } }, "rules.a.com"],
  [{ rules: { [`${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(8)}`]: [{}] } }, "rules"],
  [header("bad header", "v"), "headers"],
  [header("a".repeat(65), "v"), "headers"],
  [header("", "v"), "headers"],
  [header("a", "v".repeat(2049)), "headers.a"],
  [
    {
      rules: {
        "a.com": [{ transform: { headers: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`h${i}`, "v"])) } }],
      },
    },
    "headers",
  ],
  [{ egressProxy: { address: "p.com:1", username: "u".repeat(256) } }, "egressProxy.username"],
  [{ httpsPorts: [0] }, "httpsPorts"],
])("%j is over a limit", (network, field) => {
  expect(refusal(network)).toContain(field);
});

test.each<NetworkOptions>([
  {},
  { allowOut: ["8.8.8.8"] },
  { allowOut: ["8.8.8.0/24"], denyOut: ["1.1.1.1"] },
  { allowOut: ["8.8.8.8", "9.9.9.0/24"], denyOut: [ALL] },
  { denyOut: [ALL] },
  { allowOut: ["example.com"], denyOut: [ALL] },
  { allowOut: ["*.example.com", "8.8.8.8"], denyOut: ["10.0.0.0/8", ALL] },
  { allowOut: Array.from({ length: 1000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`) },
  { allowOut: ["10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16"] },
  {
    rules: { "*.example.com": [{ transform: { headers: { A: "$ {e2b.secrets.A} $", B: "${OTHER} $" } } }] },
  },
  { egressProxy: { address: "203.0.113.5:1080", username: "u".repeat(255), password: "p".repeat(255) } },
  { maskRequestHost: "localhost:3000" },
  { maskRequestHost: "${PORT}-app.example.com:${PORT}" },
  { maskRequestHost: "[::1]:${PORT}" },
  { httpsPorts: [443, 8443] },
])("%j is accepted", (network) => {
  expect(refusal(network)).toBe("accepted");
});

test("an operator may allow internal proxies, range by range", () => {
  const allow = "10.1.0.0/16, 127.0.0.1";
  for (const host of ["10.1.2.3", "127.0.0.1", "localhost"]) {
    expect(() => read({ egressProxy: { address: `${host}:1080` } }, allow), host).not.toThrow();
  }
  expect(() => read({ egressProxy: { address: "10.2.0.1:1080" } }, allow)).toThrow("internal address");
  expect(() => readAllowed("10.0.0.0/8,nonsense")).toThrow(ConfigError);
});
