/**
 * `allowOut` and `denyOut` with addresses, as clients of the SDK expect them, on the test internet. The comment above a test
 * is the name of the public test that it follows.
 */

import { ALL_TRAFFIC } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { ADDRESS, FORBIDDEN, NETWORKS } from "../../support/internet/plan.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { NOTHING, pauseAndResume, reach, resolvesAt, sandboxWith, triedBriefly } from "../../support/sandbox/egress.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

openPlatform();
const internet = openInternet();
const { eight, eightFour, nine, one, oneTwo } = ADDRESS;

describe("egress by address", () => {
  // TestEgressFirewallAllowSpecificIP
  test("with one address allowed, that address is reached and another is not", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "blocked" });
  });

  // TestEgressFirewallBlockSpecificIP
  test("with one address denied, that address is not reached and another is", async () => {
    const sandbox = await sandboxWith({ denyOut: [one] });
    expect(await reach(sandbox, one, eight)).toEqual({ [one]: "blocked", [eight]: "ok" });
  });

  // TestEgressFirewallAllowCIDRRange
  test("with one range allowed, an address in it is reached and another is not", async () => {
    const sandbox = await sandboxWith({ allowOut: [NETWORKS.second], denyOut: NOTHING });
    expect(await reach(sandbox, one, eight)).toEqual({ [one]: "ok", [eight]: "blocked" });
  });

  // TestEgressFirewallBlockCIDRRange
  test("with one range denied, no address in it is reached and another is", async () => {
    const sandbox = await sandboxWith({ denyOut: [NETWORKS.second] });
    expect(await reach(sandbox, one, oneTwo, eight)).toEqual({ [one]: "blocked", [oneTwo]: "blocked", [eight]: "ok" });
  });

  // TestEgressFirewallAllowAndBlockCombination
  test("an allowed address in a denied range is reached, and other addresses of the denied ranges are not", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: [NETWORKS.first, NETWORKS.second] });
    expect(await reach(sandbox, eight, nine, one)).toEqual({ [eight]: "ok", [nine]: "blocked", [one]: "blocked" });
  });

  // TestEgressFirewallPersistsAfterResume
  test("the rules for addresses are the same after pause and resume", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    const expected = { [eight]: "ok", [one]: "blocked" };
    expect(await reach(sandbox, eight, one)).toEqual(expected);
    expect(await reach(await pauseAndResume(sandbox), eight, one)).toEqual(expected);
  });

  // TestEgressFirewallEmptyConfig
  test("with empty network options every address is reached", async () => {
    const sandbox = await sandboxWith({});
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  // TestEgressFirewallAllowAll
  test("with all traffic allowed and all denied every address is reached", async () => {
    const sandbox = await sandboxWith({ allowOut: [ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  // TestEgressFirewallAllowOverridesBlock
  test("an address that is both allowed and denied is reached", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: [eight] });
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
  });

  // TestEgressFirewallMultipleAllowedIPs
  test("with three addresses allowed, each of them is reached and a fourth is not", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight, one, eightFour], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one, eightFour, nine)).toEqual({
      [eight]: "ok",
      [one]: "ok",
      [eightFour]: "ok",
      [nine]: "blocked",
    });
  });

  // TestEgressFirewallWithInternetAccessFalse
  test("without internet access an allowed address is still reached, and another is not", async () => {
    const sandbox = await ownSandbox({ allowInternetAccess: false, network: { allowOut: [eight] } });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "blocked" });
  });

  // TestEgressFirewallPrivateIPRangesAlwaysBlocked
  test("private and link-local addresses are never reached, even when their ranges are allowed", async () => {
    const before = await Promise.all(FORBIDDEN.map((address) => internet.packets("border", { address })));
    const sandbox = await sandboxWith({
      allowOut: ["10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16"],
    });
    const outcomes = await triedBriefly(sandbox, ...FORBIDDEN.map((address) => `http://${address}/`));
    expect(outcomes.filter((outcome) => outcome === "ok")).toEqual([]);
    // The forbidden addresses exist there: they answer the machine itself.
    for (const address of FORBIDDEN) await (await fetch(`http://${address}/`)).text();
    for (const [index, address] of FORBIDDEN.entries()) {
      expect(await internet.packets("passed", { address }), address).toBe(0);
      expect(await internet.packets("border", { address }), address).toBeGreaterThan(before[index] ?? 0);
    }
  });

  // TestEgressFirewallAllowAllDuplicate
  test("with all traffic allowed twice every address is reached", async () => {
    const sandbox = await sandboxWith({ allowOut: [ALL_TRAFFIC, ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  // TestEgressFirewallRegularIPThenAllowAll
  test("with an address and then all traffic allowed every address is reached", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight, ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  // TestEgressFirewallUDPAllowedIP
  test("over UDP an allowed address is reached, and no packet leaves for another", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    expect([await resolvesAt(sandbox, eight), await resolvesAt(sandbox, one)]).toEqual([true, false]);
    expect(await internet.packets("border", { address: one, port: 5300, protocol: "udp" })).toBe(0);
  });

  // TestEgressFirewallUDPAllowedCIDR
  test("over UDP an address in an allowed range is reached, and no packet leaves for another", async () => {
    const sandbox = await sandboxWith({ allowOut: [NETWORKS.first], denyOut: NOTHING });
    expect([await resolvesAt(sandbox, eight), await resolvesAt(sandbox, oneTwo)]).toEqual([true, false]);
    expect(await internet.packets("border", { address: oneTwo, port: 5300, protocol: "udp" })).toBe(0);
  });
});

describe("allowInternetAccess", () => {
  // TestInternetAccess
  test.each([true, false])(
    "with allowInternetAccess %s an address and a name are reached only if it is true",
    async (allowInternetAccess) => {
      const sandbox = await ownSandbox({ allowInternetAccess });
      const expected = allowInternetAccess ? "ok" : "blocked";
      expect(await reach(sandbox, eight, "google.example")).toEqual({ [eight]: expected, "google.example": expected });
    },
  );

  // TestInternetAccessResumedSbx
  test.each([true, false])(
    "with allowInternetAccess %s an address and a name are reached after a resume only if it is true",
    async (allowInternetAccess) => {
      const sandbox = await pauseAndResume(await ownSandbox({ allowInternetAccess }));
      const expected = allowInternetAccess ? "ok" : "blocked";
      expect(await reach(sandbox, eight, "google.example")).toEqual({ [eight]: expected, "google.example": expected });
    },
  );
});
