/** The schedule of signing keys: at every time one key signs, and every key that a token may name is published. */

import { describe, expect, test } from "vitest";
import {
  planRevocation,
  planRotation,
  planRound,
  planStart,
  schedule,
  signerOf,
} from "../../../../orchestrator/identity/schedule.ts";
import { spiffeId, trustDomainOf } from "../../../../orchestrator/identity/subject.ts";
import type { IdentityKey } from "../../../../orchestrator/store/identity/record.ts";

const MINUTE = 60_000;
const TOKEN = 10 * MINUTE;
const SKEW = 5 * MINUTE;
const TIMES = { aheadMs: 60 * MINUTE, rotateMs: 0 };

function key(sequence: number, over: Partial<IdentityKey> = {}): IdentityKey {
  const signsFrom = sequence * 1000 * MINUTE;
  return {
    sequence,
    kid: `k${sequence}`,
    algorithm: "ES256",
    publicKey: {},
    sealedPrivateKey: "sealed",
    createdAt: signsFrom - 60 * MINUTE,
    signsFrom,
    tokenMs: TOKEN,
    ...over,
  };
}

const [first, second] = [key(1), key(2)];
const both = [first, second];
const states = (keys: readonly IdentityKey[], now: number) => schedule(keys, now).map(({ state }) => state);

describe("of two keys", () => {
  test.each([
    ["before the second one's time the first signs", second.signsFrom - 1, ["signing", "next"]],
    ["from the second one's time on it signs", second.signsFrom, ["retired", "signing"]],
    ["after the clock was set back before both, the first signs", 5, ["signing", "next"]],
  ])("%s", (_name, now, wanted) => {
    expect(states(both, now)).toEqual(wanted);
  });

  test("a retired key stays until the last token that it signed has expired, and the slowest clock agrees", () => {
    const until = second.signsFrom + TOKEN + SKEW;
    expect(schedule(both, second.signsFrom)[0]?.publishedUntil).toBe(until);
    expect(planRound(both, until - 1, TIMES)).toEqual({ erase: ["k1"], remove: [] });
    expect(planRound(both, until, TIMES)).toEqual({ erase: ["k1"], remove: ["k1"] });
    const erased = [key(1, { sealedPrivateKey: undefined }), second];
    expect(planRound(erased, until - 1, TIMES)).toEqual({ erase: [], remove: [] });
    // Its private half is gone, so it signs no more, wherever the clock is.
    expect(signerOf(erased, 5)?.kid).toBe("k2");
  });
});

describe("a rotation", () => {
  test("adds a key that signs later, and repeating it meanwhile changes nothing", () => {
    const now = first.signsFrom + 1;
    expect(planRotation([first], now, TIMES)).toEqual({ addAt: now + TIMES.aheadMs });
    expect(planRotation(both, second.signsFrom - 1, TIMES)).toEqual({});
    expect(planRotation(both, second.signsFrom, TIMES)).toEqual({ addAt: second.signsFrom + TIMES.aheadMs });
  });

  test("after the clock was set back gives the new key no earlier time than the others have", () => {
    expect(planRotation([first], 0, TIMES).addAt).toBe(first.signsFrom);
  });

  test("begins by itself at the age that is set", () => {
    const times = { ...TIMES, rotateMs: 30 * 1000 * MINUTE };
    const due = first.createdAt + times.rotateMs;
    expect(planRound([first], due - 1, times).addAt).toBeUndefined();
    expect(planRound([first], due, times).addAt).toBe(due + TIMES.aheadMs);
    expect(planRound([first], due, TIMES).addAt).toBeUndefined();
  });

  test("follows from another algorithm in the settings", () => {
    const ask = { ...TIMES, algorithm: "EdDSA" as const };
    expect(planStart([], 7, ask)).toEqual({ addAt: 7 });
    expect(planStart(both, 7, { ...ask, algorithm: "ES256" })).toEqual({});
    expect(planStart([first], first.signsFrom, ask)).toEqual({ addAt: first.signsFrom + TIMES.aheadMs });
    expect(planStart([first, key(2, { algorithm: "EdDSA" })], first.signsFrom, ask)).toEqual({});
  });
});

test.each([
  ["of the only key makes another that signs at once", [first], "k1", { remove: ["k1"], addAt: 3000 * MINUTE }],
  [
    "of the signing key removes it, and the only rest is retired: a new key signs",
    both,
    "k2",
    { remove: ["k2"], addAt: 3000 * MINUTE },
  ],
  ["of a retired key removes it", both, "k1", { remove: ["k1"] }],
  [
    "of the signing key lets the next one sign at once",
    [first, second, key(9)],
    "k2",
    { remove: ["k2"], move: { kid: "k9", signsFrom: 3000 * MINUTE } },
  ],
  ["of the next key removes it", [first, key(9)], "k9", { remove: ["k9"] }],
  ["of an unknown key changes nothing", both, "k7", {}],
])("a revocation %s", (_name, keys, kid, plan) => {
  expect(planRevocation(keys, 3000 * MINUTE, kid)).toEqual(plan);
});

describe("a SPIFFE id", () => {
  test("has the trust domain and the segments", () => {
    expect(spiffeId("td.example", ["sandbox", "i1"])).toBe("spiffe://td.example/sandbox/i1");
  });

  test.each([
    ["TD", ["a"]],
    ["td:1", ["a"]],
    ["", ["a"]],
    ["td", []],
    ["td", [""]],
    ["td", ["."]],
    ["td", [".."]],
    ["td", ["a/b"]],
    ["td", ["a%41"]],
    ["td", ["ä"]],
    ["td", ["a".repeat(2048)]],
  ])("is not made of '%s' and %j", (trustDomain, segments) => {
    expect(() => spiffeId(trustDomain, segments)).toThrow("is no SPIFFE id");
  });

  test.each([
    ["https://API.example.com:8443/svc", "api.example.com"],
    ["http://127.0.0.1:3000", "127.0.0.1"],
    ["http://[fd00::1]:3000", "fd00-1"],
    ["http://[::]", "localhost"],
  ])("of the issuer %s is in the trust domain %s", (issuer, domain) => {
    expect(trustDomainOf(issuer)).toBe(domain);
    expect(spiffeId(trustDomainOf(issuer), ["a"])).toBe(`spiffe://${domain}/a`);
  });
});
