import { describe, expect, test } from "vitest";
import { checkSignature, equalText, signFile } from "../../../../envd/files/signature.ts";

const TOKEN = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
const NOW = 1_800_000_000_000;
const file = { path: "hello.txt", operation: "read" as const, username: "user", expiration: undefined };

test("the signature of the published example is the published one", () => {
  expect(signFile(file, TOKEN)).toBe("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
});

describe("a signed request", () => {
  const check = (change: object, expiration?: string) => {
    const signature = signFile({ ...file, expiration }, TOKEN);
    checkSignature({ ...file, expiration, signature, ...change }, TOKEN, NOW);
  };

  test("is let in, for ever or until it expires", () => {
    check({});
    check({}, String(NOW / 1_000 + 1));
    check({}, String(NOW / 1_000));
  });

  test.each([
    ["without a signature", { signature: undefined }, undefined, "missing signature query parameter"],
    ["for another path", { path: "other.txt" }, undefined, "invalid signature"],
    ["for another user", { username: "root" }, undefined, "invalid signature"],
    ["for another operation", { operation: "write" }, undefined, "invalid signature"],
    ["with an expiration that was not signed", { expiration: "9999999999" }, undefined, "invalid signature"],
    ["with its expiration left out", { expiration: undefined }, "9999999999", "invalid signature"],
    ["after its expiration", {}, String(NOW / 1_000 - 1), "signature is already expired"],
    ["long after its expiration", {}, "-100000", "signature is already expired"],
    ["with an expiration that is no time", {}, "never", "invalid signature expiration"],
  ])("%s is refused", (_, change, expiration, message) => {
    expect(() => check(change, expiration)).toThrow(message);
  });
});

test.each([
  ["a", "a", true],
  ["a", "b", false],
  ["a", "ab", false],
  ["", "", true],
  ["ü", "u", false],
])("the comparison of %j and %j gives %s", (a, b, equal) => {
  expect(equalText(a, b)).toBe(equal);
});
