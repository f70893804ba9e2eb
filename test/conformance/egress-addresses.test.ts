/** `allowOut` and `denyOut` with addresses, as clients of the SDK expect them, on the test internet. */

import { ALL_TRAFFIC } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../support/internet/internet.ts";
import { ADDRESS, FORBIDDEN, NETWORKS } from "../support/internet/plan.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { NOTHING, pauseAndResume, reach, reached, resolvesAt, sandboxWith } from "../support/sandbox/egress.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

openPlatform();
const internet = openInternet();
const { eight, eightFour, nine, one, oneTwo } = ADDRESS;

describe("egress by address", () => {
  test("TestEgressFirewallAllowSpecificIP", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "blocked" });
  });

  test("TestEgressFirewallBlockSpecificIP", async () => {
    const sandbox = await sandboxWith({ denyOut: [one] });
    expect(await reach(sandbox, one, eight)).toEqual({ [one]: "blocked", [eight]: "ok" });
  });

  test("TestEgressFirewallAllowCIDRRange", async () => {
    const sandbox = await sandboxWith({ allowOut: [NETWORKS.second], denyOut: NOTHING });
    expect(await reach(sandbox, one, eight)).toEqual({ [one]: "ok", [eight]: "blocked" });
  });

  test("TestEgressFirewallBlockCIDRRange", async () => {
    const sandbox = await sandboxWith({ denyOut: [NETWORKS.second] });
    expect(await reach(sandbox, one, oneTwo, eight)).toEqual({ [one]: "blocked", [oneTwo]: "blocked", [eight]: "ok" });
  });

  test("TestEgressFirewallAllowAndBlockCombination", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: [NETWORKS.first, NETWORKS.second] });
    expect(await reach(sandbox, eight, nine, one)).toEqual({ [eight]: "ok", [nine]: "blocked", [one]: "blocked" });
  });

  test("TestEgressFirewallPersistsAfterResume", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    const expected = { [eight]: "ok", [one]: "blocked" };
    expect(await reach(sandbox, eight, one)).toEqual(expected);
    expect(await reach(await pauseAndResume(sandbox), eight, one)).toEqual(expected);
  });

  test("TestEgressFirewallEmptyConfig", async () => {
    const sandbox = await sandboxWith({});
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  test("TestEgressFirewallAllowAll", async () => {
    const sandbox = await sandboxWith({ allowOut: [ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  test("TestEgressFirewallAllowOverridesBlock", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: [eight] });
    expect(await reach(sandbox, eight)).toEqual({ [eight]: "ok" });
  });

  test("TestEgressFirewallMultipleAllowedIPs", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight, one, eightFour], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one, eightFour, nine)).toEqual({
      [eight]: "ok",
      [one]: "ok",
      [eightFour]: "ok",
      [nine]: "blocked",
    });
  });

  test("TestEgressFirewallWithInternetAccessFalse", async () => {
    const sandbox = await ownSandbox({ allowInternetAccess: false, network: { allowOut: [eight] } });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "blocked" });
  });

  test("TestEgressFirewallPrivateIPRangesAlwaysBlocked", async () => {
    const before = await Promise.all(FORBIDDEN.map((address) => internet.packets("border", { address })));
    const sandbox = await sandboxWith({
      allowOut: ["10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16"],
    });
    const outcomes = await reached(sandbox, ...FORBIDDEN.map((address) => `http://${address}/`));
    expect(outcomes.filter((outcome) => outcome === "ok")).toEqual([]);
    // The forbidden addresses exist there: they answer the machine itself.
    for (const address of FORBIDDEN) await (await fetch(`http://${address}/`)).text();
    for (const [index, address] of FORBIDDEN.entries()) {
      expect(await internet.packets("passed", { address }), address).toBe(0);
      expect(await internet.packets("border", { address }), address).toBeGreaterThan(before[index] ?? 0);
    }
  });

  test("TestEgressFirewallAllowAllDuplicate", async () => {
    const sandbox = await sandboxWith({ allowOut: [ALL_TRAFFIC, ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  test("TestEgressFirewallRegularIPThenAllowAll", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight, ALL_TRAFFIC], denyOut: NOTHING });
    expect(await reach(sandbox, eight, one)).toEqual({ [eight]: "ok", [one]: "ok" });
  });

  test("TestEgressFirewallUDPAllowedIP", async () => {
    const sandbox = await sandboxWith({ allowOut: [eight], denyOut: NOTHING });
    expect([await resolvesAt(sandbox, eight), await resolvesAt(sandbox, one)]).toEqual([true, false]);
    expect(await internet.packets("border", { address: one, port: 5300, protocol: "udp" })).toBe(0);
  });

  test("TestEgressFirewallUDPAllowedCIDR", async () => {
    const sandbox = await sandboxWith({ allowOut: [NETWORKS.first], denyOut: NOTHING });
    expect([await resolvesAt(sandbox, eight), await resolvesAt(sandbox, oneTwo)]).toEqual([true, false]);
    expect(await internet.packets("border", { address: oneTwo, port: 5300, protocol: "udp" })).toBe(0);
  });
});

describe("allow_internet_access", () => {
  test.each([true, false])("TestInternetAccess: %s", async (allowInternetAccess) => {
    const sandbox = await ownSandbox({ allowInternetAccess });
    const expected = allowInternetAccess ? "ok" : "blocked";
    expect(await reach(sandbox, eight, "google.example")).toEqual({ [eight]: expected, "google.example": expected });
  });

  test.each([true, false])("TestInternetAccessResumedSbx: %s", async (allowInternetAccess) => {
    const sandbox = await pauseAndResume(await ownSandbox({ allowInternetAccess }));
    const expected = allowInternetAccess ? "ok" : "blocked";
    expect(await reach(sandbox, eight, "google.example")).toEqual({ [eight]: expected, "google.example": expected });
  });
});
