/** Where a webhook may be sent to: no spelling of an address of the platform or of a private network passes. */

import { describe, expect, test } from "vitest";
import { targetAddresses } from "../../../../orchestrator/webhooks/addresses.ts";
import { checkTarget } from "../../../../orchestrator/webhooks/target.ts";
import { ConfigError } from "../../../../shared/program/config.ts";

const OWN = ["203.0.113.7", "fe80::1%eth0", "2600:1234::7"];
const closed = targetAddresses("", () => OWN);

test.each([
  "http://127.0.0.1/",
  "http://127.1:3000/",
  "http://2130706433/",
  "http://0x7f.1/",
  "http://0x7f000001/",
  "http://017700000001/",
  "http://0177.0.0.1/",
  "http://127.0.0.1./",
  "http://１２７.0.0.1/",
  "http://%31%32%37.0.0.1/",
  "http://0/",
  "http://10.0.0.1/",
  "http://172.16.0.1/",
  "http://192.168.1.1/",
  "http://100.64.0.1/",
  "http://169.254.169.254/latest/meta-data",
  "http://168.63.129.16/",
  "http://224.0.0.1/",
  "http://255.255.255.255/",
  "http://203.0.113.7/",
  "http://[::]/",
  "http://[::1]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]/",
  "http://[::ffff:203.0.113.7]/",
  "http://[::127.0.0.1]/",
  "http://[64:ff9b::7f00:1]/",
  "http://[2002:7f00:1::]/",
  "http://[2001:0:7f00:1::]/",
  "http://[fe80::1]/",
  "http://[fd00::1]/",
  "http://[ff02::1]/",
  "http://[2600:1234::7]/",
  "http://[2600:1234:0:0::7]/",
  "http://localhost/",
  "http://LocalHost./",
  "http://a.localhost:80/",
  "http://localhost.localdomain/",
  "http://ip6-localhost/",
])("%s is refused at once", (url) => {
  expect(() => checkTarget(url, closed)).toThrow(/must not be an address of the platform/);
});

test.each([
  ["https://user@example.com/", /user name or password/],
  ["https://:secret@example.com/", /user name or password/],
  ["https://example.com/#a", /fragment/],
  ["ftp://example.com/", /http or https/],
  ["http:///", /http or https/],
  ["http://[::1/", /http or https/],
  ["http://256.1.1.1/", /http or https/],
  [`https://example.com/${"ü".repeat(1_000)}`, /2048 characters/],
])("%s is refused with its reason, without repeating it", (url, reason) => {
  expect(() => checkTarget(url, closed)).toThrow(reason);
  expect(() => checkTarget(url, closed)).not.toThrow(/secret/);
});

test.each([
  ["https://example.com/hook?a=1", "https://example.com/hook?a=1"],
  ["http://8.8.8.8:8080", "http://8.8.8.8:8080/"],
  ["http://[2606:4700::1111]/", "http://[2606:4700::1111]/"],
  ["HTTPS://EXAMPLE.com./x", "https://example.com./x"],
])("%s is accepted", (url, stored) => {
  expect(checkTarget(url, closed)).toBe(stored);
});

describe("the operator's ranges", () => {
  const open = targetAddresses("127.0.0.0/8, fd00::/8,203.0.113.7", () => OWN);

  test.each([
    "http://127.0.0.1/",
    "http://localhost/",
    "http://[::ffff:127.0.0.1]/",
    "http://[fd00::1]/",
    "http://203.0.113.7/",
  ])("open %s", (url) => {
    expect(checkTarget(url, open)).toContain("http://");
  });

  test.each(["10.0.0.1", "::1", "fe80::1%eth0", "not an address", ""])("do not open %s", (address) => {
    expect(open.allows(address)).toBe(false);
  });

  test("that are none keep the program from starting", () => {
    expect(() => targetAddresses("10.0.0.0/8,10.0.0.0/08,me")).toThrow(ConfigError);
  });
});

test("this machine's own addresses are none to send to, as its interfaces have them now", () => {
  expect(targetAddresses("").allows("127.0.0.1")).toBe(false);
  expect(targetAddresses("").allows("8.8.8.8")).toBe(true);
});
