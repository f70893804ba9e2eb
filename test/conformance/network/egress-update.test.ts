/**
 * `PUT /sandboxes/{id}/network`: the accepted options, the replacement of all options at once, and the effect on open flows.
 * The comment above a test is the name of the public test that it follows.
 */

import { ALL_TRAFFIC, type SandboxNetworkUpdate } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { ADDRESS, NETWORKS, PORT, SOCKS_PORT } from "../../support/internet/plan.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import {
  keepConnection,
  NOTHING,
  pauseAndResume,
  putNetwork,
  reach,
  sandboxWith,
} from "../../support/sandbox/egress.ts";
import { ownSandbox, sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const { eight, nine, one, oneTwo } = ADDRESS;
const NEEDS_BLOCK_ALL =
  "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.";

// TestUpdateNetworkConfig
describe("PUT /sandboxes/{id}/network", () => {
  const sandbox = sharedSandbox();
  const put = (body: unknown, key?: string | null) => putNetwork(platform, sandbox().sandboxId, body, key);

  // not_found
  test("an update of a missing sandbox is answered with 404", async () => {
    expect((await putNetwork(platform, "i0000000000000000000", {})).status).toBe(404);
  });

  // unauthorized
  test("an update without a key or with a wrong one is answered with 401", async () => {
    expect((await put({}, null)).status).toBe(401);
    expect((await put({}, "svc_00000000000000000000000000000000")).status).toBe(401);
  });

  test("an update of a paused sandbox is answered with 409", async () => {
    const paused = await ownSandbox();
    await paused.pause();
    expect((await putNetwork(platform, paused.sandboxId, {})).status).toBe(409);
  });

  test.each<readonly [string, object, string]>([
    ["domain in deny", { denyOut: ["google.example"] }, "invalid denied CIDR google.example"],
    ["garbage in deny", { denyOut: ["not-an-ip/99"] }, "invalid denied CIDR not-an-ip/99"],
    ["unspecified address in deny", { denyOut: ["0.0.0.0"] }, "invalid denied CIDR 0.0.0.0"],
    ["domain beside 0/0 in deny", { denyOut: [ALL_TRAFFIC, "google.example"] }, "invalid denied CIDR google.example"],
    ["domain allow without deny-all", { allowOut: ["google.example"] }, NEEDS_BLOCK_ALL],
    ["domain allow with partial deny", { allowOut: ["google.example"], denyOut: [NETWORKS.second] }, NEEDS_BLOCK_ALL],
    ["wildcard without deny-all", { allowOut: ["*.google.example"] }, NEEDS_BLOCK_ALL],
    ["wildcard with partial deny", { allowOut: ["*.google.example"], denyOut: [NETWORKS.second] }, NEEDS_BLOCK_ALL],
    ["mixed domain and IP, partial", { allowOut: ["google.example", eight], denyOut: [one] }, NEEDS_BLOCK_ALL],
  ])("rejects: %s", async (_, body, message) => {
    const reply = await put(body);
    expect([reply.status, (reply.json as { message: string }).message]).toEqual([400, message]);
  });

  test.each<readonly [string, object]>([
    ["an empty body", {}],
    ["an address, nothing denied", { allowOut: [eight] }],
    ["an address, partial deny", { allowOut: [eight], denyOut: [NETWORKS.second] }],
    ["an address, all denied", { allowOut: [eight], denyOut: [ALL_TRAFFIC] }],
    ["a range, nothing denied", { allowOut: [NETWORKS.first] }],
    ["a range, all denied", { allowOut: [NETWORKS.first], denyOut: [ALL_TRAFFIC] }],
    ["deny all only", { denyOut: [ALL_TRAFFIC] }],
    ["a domain, all denied", { allowOut: ["google.example"], denyOut: [ALL_TRAFFIC] }],
    ["a wildcard, all denied", { allowOut: ["*.google.example"], denyOut: [ALL_TRAFFIC] }],
    ["mixed, all denied", { allowOut: ["google.example", "*.cloudflare.example", one], denyOut: [ALL_TRAFFIC] }],
    [
      "many ranges",
      {
        allowOut: Array.from({ length: 200 }, (_, i) => `11.${i}.0.0/16`),
        denyOut: [ALL_TRAFFIC, "198.51.100.128/27"],
      },
    ],
    ["private ranges, to no effect", { allowOut: ["10.0.0.0/8"] }],
  ])("accepts: %s", async (_, body) => {
    const reply = await put(body);
    expect([reply.status, reply.text]).toEqual([204, ""]);
  });

  test("each of fifteen steps replaces all that was before", async () => {
    const own = await ownSandbox();
    const all = [eight, one, nine, "google.example"];
    const steps: readonly (readonly [string, SandboxNetworkUpdate, readonly string[]])[] = [
      ["deny all", { denyOut: NOTHING }, []],
      ["allow one", { allowOut: [eight], denyOut: NOTHING }, [eight]],
      ["another instead", { allowOut: [one], denyOut: NOTHING }, [one]],
      ["several", { allowOut: [eight, one], denyOut: NOTHING }, [eight, one]],
      ["a range", { allowOut: ["198.51.100.0/28"], denyOut: NOTHING }, [eight, nine]],
      ["a domain", { allowOut: ["google.example"], denyOut: NOTHING }, ["google.example"]],
      ["a domain and an address", { allowOut: ["google.example", one], denyOut: NOTHING }, [one, "google.example"]],
      ["nothing allowed any more", { denyOut: NOTHING }, []],
      ["cleared", {}, all],
      ["denied again", { allowOut: [eight], denyOut: NOTHING }, [eight]],
      ["allowed and nothing denied", { allowOut: [eight] }, all],
      ["no internet", { allowInternetAccess: false }, []],
      ["true changes nothing", { allowInternetAccess: true, allowOut: [one], denyOut: NOTHING }, [one]],
      ["left out changes nothing", { denyOut: [one] }, [eight, nine, "google.example"]],
      ["cleared at the end", {}, all],
    ];
    for (const [name, update, expected] of steps) {
      await own.updateNetwork(update);
      const outcomes = await reach(own, ...all);
      expect([name, all.filter((host) => outcomes[host] === "ok")]).toEqual([name, expected]);
    }
  });

  // pause_resume_preserves_rules
  test("updated rules are the same after pause and resume", async () => {
    const own = await ownSandbox();
    await own.updateNetwork({ allowOut: [eight, "google.example"], denyOut: NOTHING });
    const expected = { [eight]: "ok", "google.example": "ok", [one]: "blocked", "cloudflare.example": "blocked" };
    expect(await reach(await pauseAndResume(own), ...Object.keys(expected))).toEqual(expected);
    expect((await own.getInfo()).network).toMatchObject({ allowOut: [eight, "google.example"], denyOut: NOTHING });
  });

  // pause_resume_preserves_allow_internet_access_false
  test("an update to allowInternetAccess false is the same after pause and resume", async () => {
    const own = await ownSandbox();
    await own.updateNetwork({ allowInternetAccess: false });
    expect(await reach(await pauseAndResume(own), eight, "google.example")).toEqual({
      [eight]: "blocked",
      "google.example": "blocked",
    });
  });
});

describe("an update of a running sandbox", () => {
  const domains = { allowOut: ["echo.example", eight, nine], denyOut: NOTHING };
  test.each<readonly [string, SandboxNetworkUpdate, SandboxNetworkUpdate]>([
    ["addresses only", {}, { denyOut: [eight] }],
    ["redirected already", domains, { ...domains, allowOut: ["echo.example", nine] }],
    ["from addresses to domains", {}, { allowOut: ["echo.example"], denyOut: NOTHING }],
    ["from domains to addresses", domains, { allowOut: [nine], denyOut: NOTHING }],
    ["to a proxy", {}, { egressProxy: { address: `${ADDRESS.socks}:${SOCKS_PORT}` }, denyOut: [eight] }],
  ])("cuts flows that are now forbidden before it answers: %s", async (_, before, after) => {
    const sandbox = await sandboxWith();
    await sandbox.updateNetwork(before);
    const state = await keepConnection(sandbox, eight, PORT.bulk);
    await expect.poll(state).toBe("open");
    await sandbox.updateNetwork(after);
    const atBorder = () => internet.packets("border", { address: eight, port: PORT.bulk });
    const then = await atBorder();
    await expect.poll(state, { timeout: 60_000 }).toBe("cut");
    // The ended connection sends no data to the other side, only a reset or a FIN, and their echoes.
    expect((await atBorder()) - then).toBeLessThanOrEqual(3);
  });

  test.each<readonly [string, SandboxNetworkUpdate, SandboxNetworkUpdate]>([
    ["addresses only", {}, { denyOut: [one] }],
    ["redirected", domains, { ...domains, allowOut: [eight, "google.example"] }],
  ])("leaves flows alone that are still allowed: %s", async (_, before, after) => {
    const sandbox = await sandboxWith();
    await sandbox.updateNetwork(before);
    const state = await keepConnection(sandbox, eight, PORT.bulk);
    await expect.poll(state).toBe("open");
    await sandbox.updateNetwork(after);
    await sandbox.commands.run("rm /tmp/kept");
    await expect.poll(state).toBe("open");
  });

  test("is whole or not at all: a refused one changes nothing", async () => {
    const sandbox = await sandboxWith({ denyOut: [one] });
    const reply = await putNetwork(platform, sandbox.sandboxId, { allowOut: [oneTwo], denyOut: [ALL_TRAFFIC, "bad"] });
    expect(reply.status).toBe(400);
    expect(await reach(sandbox, one, oneTwo, eight)).toEqual({ [one]: "blocked", [oneTwo]: "ok", [eight]: "ok" });
  });

  test("is applied whole when several come at once: one of them wins", async () => {
    const sandbox = await sandboxWith();
    const each = [eight, nine, one, oneTwo];
    await Promise.all(each.map((address) => sandbox.updateNetwork({ allowOut: [address], denyOut: NOTHING })));
    const outcomes = await reach(sandbox, ...each);
    expect(each.filter((address) => outcomes[address] === "ok")).toHaveLength(1);
    const [allowed] = each.filter((address) => outcomes[address] === "ok");
    expect((await sandbox.getInfo()).network?.allowOut).toEqual([allowed]);
  });
});
