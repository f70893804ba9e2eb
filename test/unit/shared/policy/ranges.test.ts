import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addressNumber,
  addressText,
  alwaysDenied,
  contains,
  mergeRanges,
  otherRanges,
  parseRange,
} from "../../../../shared/policy/ranges.ts";

const address = fc.nat({ max: 2 ** 32 - 1 });

test("an address is four decimal numbers, and prints as the same text", () => {
  fc.assert(
    fc.property(address, (number) => {
      expect(addressNumber(addressText(number))).toBe(number);
    }),
  );
});

test.each([
  "0177.0.0.1",
  "2130706433",
  "127.1",
  "0x7f.1",
  "0x7f000001",
  "127.0.0.1.",
  "127.0.0.01",
  "256.0.0.1",
  "1.2.3",
  "1.2.3.4.5",
  " 1.2.3.4",
  "1.2.3.4\n",
  "1.2.3.4\0",
  "+1.2.3.4",
  "1.2.3.-4",
  "1e1.2.3.4",
  "::1",
  "::ffff:127.0.0.1",
  "",
  "１.2.3.4",
])("%j is no address", (text) => {
  expect(addressNumber(text)).toBeUndefined();
  expect(parseRange(text)).toBeUndefined();
});

describe("ranges", () => {
  const text = (range: string) => {
    const parsed = parseRange(range);
    return parsed === undefined ? undefined : `${addressText(parsed.first)}-${addressText(parsed.last)}`;
  };
  test.each([
    ["0.0.0.0/0", "0.0.0.0-255.255.255.255"],
    ["10.1.2.3/8", "10.0.0.0-10.255.255.255"],
    ["203.0.113.7", "203.0.113.7-203.0.113.7"],
    ["203.0.113.7/32", "203.0.113.7-203.0.113.7"],
    ["203.0.113.7/31", "203.0.113.6-203.0.113.7"],
    ["255.255.255.255/1", "128.0.0.0-255.255.255.255"],
  ])("%s is %s", (range, expected) => expect(text(range)).toBe(expected));

  test.each(["1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/8/8", "1.2.3.4/0x8", "1.2.3/8", "/8", "1.2.3.4/ 8"])(
    "%j is no range",
    (range) => expect(parseRange(range)).toBeUndefined(),
  );

  test("merged ranges hold the same addresses, in order, apart from each other", () => {
    const small = fc.nat({ max: 60 });
    const edge = fc.tuple(small, small).map(([a, b]) => ({ first: Math.min(a, b), last: Math.max(a, b) }));
    fc.assert(
      fc.property(fc.array(edge, { maxLength: 12 }), (ranges) => {
        const merged = mergeRanges(ranges);
        for (let number = 0; number <= 61; number += 1) {
          expect(merged.some((range) => contains(range, number))).toBe(ranges.some((range) => contains(range, number)));
        }
        for (const [index, { first }] of merged.entries()) {
          const before = merged[index - 1];
          if (before !== undefined) expect(first).toBeGreaterThan(before.last + 1);
        }
      }),
    );
  });

  test("the other ranges are all addresses outside of the given ones", () => {
    const most = 2 ** 32 - 1;
    expect(otherRanges([])).toEqual([{ first: 0, last: most }]);
    expect(otherRanges([{ first: 0, last: most }])).toEqual([]);
    const some = [
      { first: 0, last: 4 },
      { first: 6, last: 6 },
      { first: 9, last: most - 1 },
    ];
    const others = [
      { first: 5, last: 5 },
      { first: 7, last: 8 },
      { first: most, last: most },
    ];
    expect(otherRanges(some)).toEqual(others);
    expect(otherRanges(others)).toEqual(some);
  });

  test("merging does not change its arguments", () => {
    const ranges = Object.freeze([Object.freeze({ first: 5, last: 9 }), Object.freeze({ first: 1, last: 6 })]);
    expect(mergeRanges(ranges)).toEqual([{ first: 1, last: 9 }]);
    expect(
      mergeRanges([
        { first: 0, last: 2 ** 32 - 1 },
        { first: 7, last: 7 },
      ]),
    ).toEqual([{ first: 0, last: 2 ** 32 - 1 }]);
  });
});

test.each([
  ["0.0.0.0", "0.0.0.0/8"],
  ["10.255.255.255", "10.0.0.0/8"],
  ["11.0.0.0", undefined],
  ["100.63.255.255", undefined],
  ["100.64.0.0", "100.64.0.0/10"],
  ["100.100.100.200", "100.64.0.0/10"],
  ["100.128.0.0", undefined],
  ["127.0.0.1", "127.0.0.0/8"],
  ["168.63.129.15", undefined],
  ["168.63.129.16", "168.63.129.16/32"],
  ["169.254.169.254", "169.254.0.0/16"],
  ["172.15.255.255", undefined],
  ["172.16.0.0", "172.16.0.0/12"],
  ["172.32.0.0", undefined],
  ["192.0.0.1", "192.0.0.0/24"],
  ["192.168.1.1", "192.168.0.0/16"],
  ["198.18.0.1", "198.18.0.0/15"],
  ["198.20.0.0", undefined],
  ["223.255.255.255", undefined],
  ["224.0.0.251", "224.0.0.0/4"],
  ["255.255.255.255", "240.0.0.0/4"],
  // The documentation ranges are ordinary addresses.
  ["192.0.2.1", undefined],
  ["198.51.100.1", undefined],
  ["203.0.113.1", undefined],
])("%s is always denied by %s", (text, range) => expect(alwaysDenied(addressNumber(text) ?? -1)).toBe(range));
