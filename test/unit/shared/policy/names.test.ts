import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bestMatch, hostName, hostOfHeader, nameMatches } from "../../../../shared/policy/names.ts";

describe("a host name has one spelling", () => {
  test.each([
    ["example.com", "example.com"],
    ["EXAMPLE.Com", "example.com"],
    ["example.com.", "example.com"],
    ["_dmarc.example.com", "_dmarc.example.com"],
    ["localhost", "localhost"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.example.", "xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["faß.de", "xn--fa-hia.de"],
    // Full-width letters and an ideographic full stop: a browser opens example.com.
    ["ｅｘａｍｐｌｅ.com", "example.com"],
    ["example。com", "example.com"],
    ["3com.com", "3com.com"],
    ["1.2.3.4.example", "1.2.3.4.example"],
    ["a".repeat(63), "a".repeat(63)],
  ])("%s is spelled %s", (text, name) => expect(hostName(text)).toBe(name));
});

describe("not host names", () => {
  test.each([
    "",
    ".",
    "..",
    ".example.com",
    "example.com..",
    "example..com",
    "example.com\0",
    "evil.com\0.example.com",
    "example.com\n",
    "exa mple.com",
    "example.com ",
    "\u00a0example.com",
    "example.com/",
    "example.com\\x",
    "user@example.com",
    "example.com:443",
    "example.com#x",
    "example.com?x",
    "%65xample.com",
    "*.example.com",
    "-example.com",
    "example-.com",
    "exa$mple.com",
    "example.com／evil.com",
    "example.com＠evil.com",
    "example.com：80",
    "example.com℀evil",
    "a".repeat(64),
    `${"a.".repeat(126)}aa`,
    "127.0.0.1",
    "127.0.0.1.",
    "0177.0.0.1",
    "2130706433",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F.1",
    "1.2.3.4.5",
    "example.1",
    "example.0x1",
    "１２７.0.0.1",
    "１２７。０。０。１",
    "[::1]",
    "::1",
    "::ffff:127.0.0.1",
    "\ud800.example.com",
  ])("%j is refused", (text) => expect(hostName(text)).toBeUndefined());
});

test("every accepted host name consists of labels, and is its own spelling", () => {
  const hostile = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc
      .array(
        fc.constantFrom("a", "Z", "0", "9", "x", ".", "-", "_", "é", "ｅ", "。", "\0", " ", "/", "@", "%", "*", ":"),
        {
          maxLength: 40,
        },
      )
      .map((list) => list.join("")),
  );
  fc.assert(
    fc.property(hostile, (text) => {
      const name = hostName(text);
      if (name === undefined) return;
      expect(name).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/);
      expect(name.length).toBeLessThanOrEqual(253);
      expect(hostName(name)).toBe(name);
      expect(hostName(`${name}.`)).toBe(name);
      expect(hostName(name.toUpperCase())).toBe(name);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ["example.com", "example.com"],
  ["Example.com:8080", "example.com"],
  [" example.com ", "example.com"],
  ["example.com:", undefined],
  ["example.com:x", undefined],
  ["example.com:80:80", undefined],
  ["[::1]:80", undefined],
  ["127.0.0.1:80", undefined],
  ["a.com,b.com", undefined],
  // IDNA reads a soft hyphen as nothing, and a feminine ordinal as `a`; a server may not.
  ["exam\u00adple.com", undefined],
  ["ex\u00aample.com", undefined],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["", undefined],
])("the name in the header Host: %j is %j", (text, name) => expect(hostOfHeader(text)).toBe(name));

describe("patterns are compared by labels", () => {
  test.each([
    ["example.com", "example.com", true],
    ["example.com", "www.example.com", false],
    ["example.com", "badexample.com", false],
    ["example.com", "example.com.evil.com", false],
    ["*.example.com", "www.example.com", true],
    ["*.example.com", "a.b.c.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", "badexample.com", false],
    ["*.example.com", "www.badexample.com", false],
    ["*.example.com", "example.com.evil.com", false],
    ["*.com", "example.com", true],
    ["*.com", "com", false],
    ["*", "example.com", true],
    ["*", "localhost", true],
    ["", "example.com", false],
  ])("%j matches %j: %j", (pattern, name, matches) => expect(nameMatches(pattern, name)).toBe(matches));

  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/);
  const names = fc.array(label, { minLength: 1, maxLength: 5 });

  test("a wildcard matches exactly names with more labels in front", () => {
    fc.assert(
      fc.property(names, names, (front, of) => {
        const name = of.join(".");
        expect(nameMatches(`*.${name}`, [...front, ...of].join("."))).toBe(true);
        expect(nameMatches(`*.${name}`, name)).toBe(false);
        expect(nameMatches(`*.${name}`, `${front.join(".")}${name}`)).toBe(
          `${front.join(".")}${name}`.endsWith(`.${name}`),
        );
      }),
    );
  });
});

describe("the rule for a name", () => {
  const rules = ["*.com", "api.example.com", "*.example.com", "*.eu.example.com"].map((host) => ({ host }));
  test.each([
    ["api.example.com", "api.example.com"],
    ["www.example.com", "*.example.com"],
    ["a.eu.example.com", "*.eu.example.com"],
    ["eu.example.com", "*.example.com"],
    ["example.com", "*.com"],
    ["v.api.example.com", "*.example.com"],
    ["example.org", undefined],
  ])("%s is %s, in any order", (name, host) => {
    expect(bestMatch(rules, name)?.host).toBe(host);
    expect(bestMatch(rules.toReversed(), name)?.host).toBe(host);
  });
});
