/**
 * Domains in `allowOut`, and the traffic that must go on working beside them. The comment above a test is the name of the
 * public test that it follows.
 */

import { ALL_TRAFFIC, type SandboxNetworkOpts } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { ADDRESS, COUNTED, PORT } from "../../support/internet/plan.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import {
  ask,
  greeting,
  halfClose,
  NOTHING,
  pauseAndResume,
  reach,
  reached,
  sandboxWith,
} from "../../support/sandbox/egress.ts";

openPlatform();
const internet = openInternet();
const { eightFour, one } = ADDRESS;

describe("egress by name", () => {
  // TestEgressFirewallAllowDomainThroughBlockedInternet
  test("with all else denied an allowed name is reached, and another is not", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "cloudflare.example")).toEqual({
      "google.example": "ok",
      "cloudflare.example": "blocked",
    });
  });

  // TestEgressFirewallAllowWildcardDomainThroughBlockedInternet
  test("an allowed wildcard matches names of any depth below it, neither its apex nor a name that only ends alike", async () => {
    const sandbox = await sandboxWith({ allowOut: ["*.google.example"], denyOut: NOTHING });
    expect(
      await reach(sandbox, "www.google.example", "maps.google.example", "a.b.deep.google.example", "google.example"),
    ).toEqual({
      "www.google.example": "ok",
      "maps.google.example": "ok",
      "a.b.deep.google.example": "ok",
      "google.example": "blocked",
    });
    expect(await reach(sandbox, "cloudflare.example", "badgoogle.example")).toEqual({
      "cloudflare.example": "blocked",
      "badgoogle.example": "blocked",
    });
  });

  // TestEgressFirewallExactDomainMatchVsSubdomain
  test("an allowed name does not allow the names below it", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "www.google.example")).toEqual({
      "google.example": "ok",
      "www.google.example": "blocked",
    });
  });

  // TestEgressFirewallAllowAllDomainsWildcard
  test("with the wildcard * allowed every name is reached", async () => {
    const sandbox = await sandboxWith({ allowOut: ["*"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "cloudflare.example", "echo.example")).toEqual({
      "google.example": "ok",
      "cloudflare.example": "ok",
      "echo.example": "ok",
    });
  });

  // TestEgressFirewallDomainCaseInsensitive
  test("an allowed name is reached in any mix of upper and lower case", async () => {
    const sandbox = await sandboxWith({ allowOut: ["Google.EXAMPLE"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "GOOGLE.example", "cloudflare.example")).toEqual({
      "google.example": "ok",
      "GOOGLE.example": "ok",
      "cloudflare.example": "blocked",
    });
  });

  // TestEgressFirewallAllowDomainAndIP
  test("with a name and an address allowed both are reached, and others are not", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", one], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", one, "cloudflare.example", eightFour)).toEqual({
      "google.example": "ok",
      [one]: "ok",
      "cloudflare.example": "blocked",
      [eightFour]: "blocked",
    });
  });

  // TestEgressFirewallHTTPSByIPNoHostname
  test("with only a name allowed, HTTPS to another address without a name is refused", async () => {
    const sandbox = await sandboxWith({ allowOut: ["cloudflare.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "cloudflare.example", one)).toEqual({ "cloudflare.example": "ok", [one]: "blocked" });
  });

  // TestEgressFirewallDomainPersistsAfterResume
  test("the rules for names are the same after pause and resume", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    const expected = { "google.example": "ok", "cloudflare.example": "blocked", [one]: "blocked" };
    const names = Object.keys(expected);
    expect(await reach(sandbox, ...names)).toEqual(expected);
    expect(await reach(await pauseAndResume(sandbox), ...names)).toEqual(expected);
  });

  // TestEgressFirewallHTTPDomainFiltering
  test("over plain HTTP the Host header decides, and only on port 80", async () => {
    const sandbox = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
    expect(await reached(sandbox, "http://echo.example/", "http://plain.example/")).toEqual(["ok", "blocked"]);
    // The Host header itself decides, and not the name from which the client got the address.
    const { stdout } = await sandbox.commands.run(
      `curl -s -m 3 -H 'Host: plain.example' http://echo.example/ >/dev/null && echo ok || echo blocked`,
    );
    expect(stdout).toBe("blocked\n");
    expect(await reached(sandbox, `http://echo.example:${PORT.http}/`)).toEqual(["blocked"]);
  });

  // TestEgressFirewallDNSSpoofingNeutralized
  test("a false address for an allowed name in /etc/hosts is ignored: the connection goes to the name's real address", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    const before = await internet.packets("border", { address: COUNTED.spoofedName });
    await sandbox.commands.run(`echo '${COUNTED.spoofedName} google.example' >> /etc/hosts`, { user: "root" });
    expect(await ask(sandbox, "https://google.example/")).toMatchObject({
      address: ADDRESS.google,
      sni: "google.example",
    });
    expect(await ask(sandbox, "http://google.example/")).toMatchObject({ address: ADDRESS.google });
    expect(await internet.packets("border", { address: COUNTED.spoofedName })).toBe(before);
  });
});

describe("protocols that pass untouched", () => {
  const welcome = "SSH-2.0-TestInternet_1.0\nPermission denied (publickey). You said 6 bytes";

  // TestNoNetworkConfig_SSHWorks
  test("SSH works without network options", async () => {
    expect(await greeting(await sandboxWith())).toBe(welcome);
  });

  // TestWithNetworkConfig_SSHWorks
  test("SSH works with all traffic allowed", async () => {
    expect(await greeting(await sandboxWith({ allowOut: [ALL_TRAFFIC], denyOut: NOTHING }))).toBe(welcome);
  });

  // TestWithNetworkConfig_SSHWorks
  test("SSH works to an allowed address beside allowed names", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", ADDRESS.ssh], denyOut: NOTHING });
    expect(await greeting(sandbox, ADDRESS.ssh)).toBe(welcome);
  });

  // TestGPGKeyserverWorks
  test.each<readonly [string, SandboxNetworkOpts | undefined]>([
    ["without a config", undefined],
    ["with everything allowed", { allowOut: [ALL_TRAFFIC], denyOut: NOTHING }],
    ["with domains beside an address", { allowOut: ["google.example", ADDRESS.keys], denyOut: NOTHING }],
  ])("a half-closed connection still gets its answer, %s", async (_, network) => {
    const watch = await internet.watch();
    const sandbox = await sandboxWith(network);
    expect(await halfClose(sandbox, ADDRESS.keys)).toBe("received 5\nbye");
    await expect.poll(() => watch.all("half-closed")).toMatchObject([{ receivedAfter: 100_000 }]);
  });
});
