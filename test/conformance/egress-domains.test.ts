/** Domains in `allowOut`, and the traffic that must go on working beside them. */

import { ALL_TRAFFIC, type SandboxNetworkOpts } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../support/internet/internet.ts";
import { ADDRESS, COUNTED, PORT } from "../support/internet/plan.ts";
import { openPlatform } from "../support/platform/platform.ts";
import {
  ask,
  greeting,
  halfClose,
  NOTHING,
  pauseAndResume,
  reach,
  reached,
  sandboxWith,
} from "../support/sandbox/egress.ts";

openPlatform();
const internet = openInternet();
const { eightFour, one } = ADDRESS;

describe("egress by name", () => {
  test("TestEgressFirewallAllowDomainThroughBlockedInternet", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "cloudflare.example")).toEqual({
      "google.example": "ok",
      "cloudflare.example": "blocked",
    });
  });

  test("TestEgressFirewallAllowWildcardDomainThroughBlockedInternet", async () => {
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

  test("TestEgressFirewallExactDomainMatchVsSubdomain", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "www.google.example")).toEqual({
      "google.example": "ok",
      "www.google.example": "blocked",
    });
  });

  test("TestEgressFirewallAllowAllDomainsWildcard", async () => {
    const sandbox = await sandboxWith({ allowOut: ["*"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "cloudflare.example", "echo.example")).toEqual({
      "google.example": "ok",
      "cloudflare.example": "ok",
      "echo.example": "ok",
    });
  });

  test("TestEgressFirewallDomainCaseInsensitive", async () => {
    const sandbox = await sandboxWith({ allowOut: ["Google.EXAMPLE"], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", "GOOGLE.example", "cloudflare.example")).toEqual({
      "google.example": "ok",
      "GOOGLE.example": "ok",
      "cloudflare.example": "blocked",
    });
  });

  test("TestEgressFirewallAllowDomainAndIP", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", one], denyOut: NOTHING });
    expect(await reach(sandbox, "google.example", one, "cloudflare.example", eightFour)).toEqual({
      "google.example": "ok",
      [one]: "ok",
      "cloudflare.example": "blocked",
      [eightFour]: "blocked",
    });
  });

  test("TestEgressFirewallHTTPSByIPNoHostname", async () => {
    const sandbox = await sandboxWith({ allowOut: ["cloudflare.example"], denyOut: NOTHING });
    expect(await reach(sandbox, "cloudflare.example", one)).toEqual({ "cloudflare.example": "ok", [one]: "blocked" });
  });

  test("TestEgressFirewallDomainPersistsAfterResume", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    const expected = { "google.example": "ok", "cloudflare.example": "blocked", [one]: "blocked" };
    const names = Object.keys(expected);
    expect(await reach(sandbox, ...names)).toEqual(expected);
    expect(await reach(await pauseAndResume(sandbox), ...names)).toEqual(expected);
  });

  test("TestEgressFirewallHTTPDomainFiltering", async () => {
    const sandbox = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
    expect(await reached(sandbox, "http://echo.example/", "http://plain.example/")).toEqual(["ok", "blocked"]);
    // The Host header itself decides, and not the name from which the client got the address.
    const { stdout } = await sandbox.commands.run(
      `curl -s -m 3 -H 'Host: plain.example' http://echo.example/ >/dev/null && echo ok || echo blocked`,
    );
    expect(stdout).toBe("blocked\n");
    expect(await reached(sandbox, `http://echo.example:${PORT.http}/`)).toEqual(["blocked"]);
  });

  test("TestEgressFirewallDNSSpoofingNeutralized", async () => {
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

  test("TestNoNetworkConfig_SSHWorks", async () => {
    expect(await greeting(await sandboxWith())).toBe(welcome);
  });

  test("TestWithNetworkConfig_SSHWorks", async () => {
    expect(await greeting(await sandboxWith({ allowOut: [ALL_TRAFFIC], denyOut: NOTHING }))).toBe(welcome);
  });

  test("TestWithNetworkConfig_SSHWorks, with domains beside an address", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", ADDRESS.ssh], denyOut: NOTHING });
    expect(await greeting(sandbox, ADDRESS.ssh)).toBe(welcome);
  });

  test.each<readonly [string, SandboxNetworkOpts | undefined]>([
    ["without a config", undefined],
    ["with everything allowed", { allowOut: [ALL_TRAFFIC], denyOut: NOTHING }],
    ["with domains beside an address", { allowOut: ["google.example", ADDRESS.keys], denyOut: NOTHING }],
  ])("TestGPGKeyserverWorks: half-closed connections, %s", async (_, network) => {
    const watch = await internet.watch();
    const sandbox = await sandboxWith(network);
    expect(await halfClose(sandbox, ADDRESS.keys)).toBe("received 5\nbye");
    await expect.poll(() => watch.all("half-closed")).toMatchObject([{ receivedAfter: 100_000 }]);
  });
});
