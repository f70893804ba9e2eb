import { describe, expect, test } from "vitest";
import { negotiateEncoding } from "../../../../envd/files/negotiate.ts";

const SMALL = 100;
const MIDDLE = 10_000;
const LARGE = 100_000_000;

describe("the encoding of a download", () => {
  test.each([
    [undefined, MIDDLE, "identity"],
    ["", MIDDLE, "identity"],
    ["gzip", SMALL, "gzip"],
    ["gzip", LARGE, "gzip"],
    ["x-gzip", MIDDLE, "gzip"],
    ["GZIP;q=0.5", MIDDLE, "gzip"],
    ["gzip;q=1, identity;q=0.5", LARGE, "gzip"],
    ["gzip;q=0.5, identity", MIDDLE, "identity"],
    ["gzip;q=0", MIDDLE, "identity"],
    ["identity;q=0, gzip", LARGE, "gzip"],
    ["identity;q=0, *", SMALL, "gzip"],
    ["br", MIDDLE, "identity"],
    ["deflate, br", MIDDLE, "identity"],
    // A stock client lists every encoding that it knows; envd compresses only where that pays.
    ["gzip, deflate", MIDDLE, "gzip"],
    ["gzip, deflate, br", SMALL, "identity"],
    ["gzip, deflate, br", LARGE, "identity"],
  ])("%j for %i bytes gives %s", (header, size, expected) => {
    expect(negotiateEncoding(header, size)).toBe(expected);
  });

  test.each(["identity;q=0", "identity;q=0, br", "*;q=0", "gzip;q=0, identity;q=0"])(
    "%j accepts nothing we have",
    (header) => {
      expect(() => negotiateEncoding(header, MIDDLE)).toThrow(
        "no acceptable encoding found, supported: [identity, gzip]",
      );
    },
  );
});
