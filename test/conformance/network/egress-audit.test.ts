/** `network/check` predicts a decision and `network/log` records it: the same code decides, and both use the same words. */

import { ALL_TRAFFIC, type Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { ADDRESS, NETWORKS, SOCKS_PORT } from "../../support/internet/plan.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import {
  NOTHING,
  pauseAndResume,
  reach,
  reached,
  resolvesAt,
  sandboxWith,
  triedBriefly,
} from "../../support/sandbox/egress.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const { eight, one } = ADDRESS;

interface Verdict {
  readonly verdict: string;
  readonly rule: string;
  readonly reason: string;
  readonly addresses: readonly string[];
  readonly via?: string;
  readonly transform?: string;
}

interface Entry {
  readonly timestamp: string;
  readonly protocol: string;
  readonly destination: string;
  readonly port: number;
  readonly name?: string;
  readonly verdict: string;
  readonly rule: string;
  readonly count: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

async function check(sandbox: Sandbox, host: string, port: number, protocol?: string): Promise<Verdict> {
  const query = `host=${encodeURIComponent(host)}&port=${port}${protocol === undefined ? "" : `&protocol=${protocol}`}`;
  const reply = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}/network/check?${query}`);
  expect([reply.status, reply.text]).toEqual([200, expect.any(String)]);
  return reply.json as Verdict;
}

async function log(sandbox: Sandbox): Promise<readonly Entry[]> {
  const reply = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}/network/log`);
  return (reply.json as { entries: readonly Entry[] }).entries;
}

describe("network/check", () => {
  test("names the entry that decides, and says where a name leads", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", NETWORKS.second], denyOut: NOTHING });
    expect(await check(sandbox, "google.example", 443)).toMatchObject({
      verdict: "allow",
      rule: "allowOut google.example",
      addresses: [ADDRESS.google],
    });
    expect(await check(sandbox, one, 22)).toMatchObject({ verdict: "allow", rule: `allowOut ${NETWORKS.second}` });
    expect(await check(sandbox, eight, 443)).toMatchObject({ verdict: "deny", rule: `denyOut ${ALL_TRAFFIC}` });
    expect(await check(sandbox, "plain.example", 443)).toMatchObject({ verdict: "deny", addresses: [] });
    expect(await check(sandbox, "10.1.2.3", 80)).toMatchObject({ verdict: "deny", rule: "always 10.0.0.0/8" });
    expect(await check(sandbox, eight, 53, "udp")).toMatchObject({ verdict: "deny", rule: "always port 53" });
    expect(await check(sandbox, eight, 1234, "udp")).toMatchObject({ verdict: "deny", rule: "always udp" });
  });

  test("a name that leads inside is denied, without a connection", async () => {
    const sandbox = await sandboxWith({ allowOut: ["*"], denyOut: NOTHING });
    const before = await internet.packets("border", { address: "10.255.255.1" });
    expect(await check(sandbox, "private.test", 443)).toMatchObject({ verdict: "deny", addresses: ["10.255.255.1"] });
    expect(await internet.packets("border", { address: "10.255.255.1" })).toBe(before);
  });

  test("knows the proxy and the rules", async () => {
    const rules = { "*.api.example": [{ transform: { headers: { "x-a": "b" } } }] };
    const sandbox = await sandboxWith({ rules, egressProxy: { address: `${ADDRESS.socks}:${SOCKS_PORT}` } });
    expect(await check(sandbox, "one.api.example", 443)).toMatchObject({
      verdict: "allow",
      rule: "default",
      via: "egressProxy",
      transform: "*.api.example",
    });
  });

  test("agrees with what happens", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example", "*.deep.google.example", one], denyOut: NOTHING });
    const hosts = ["google.example", "www.google.example", "x.deep.google.example", "cloudflare.example", one, eight];
    const outcomes = await reach(sandbox, ...hosts);
    for (const host of hosts) {
      const { verdict } = await check(sandbox, host, 443);
      expect([host, verdict]).toEqual([host, outcomes[host] === "ok" ? "allow" : "deny"]);
    }
  });

  test.each([
    ["a sandbox that does not exist", "i0000000000000000000", "host=a.example&port=1", 404],
    ["no port", undefined, "host=a.example", 400],
    ["a port that is none", undefined, "host=a.example&port=70000", 400],
    ["no host", undefined, "port=80", 400],
  ])("refuses %s", async (_, id, query, status) => {
    const sandboxId = id ?? (await ownSandbox()).sandboxId;
    expect((await api(platform, "GET", `/sandboxes/${sandboxId}/network/check?${query}`)).status).toBe(status);
  });
});

describe("network/log", () => {
  test("has what the kernel decided alone, allowed and denied", async () => {
    const sandbox = await sandboxWith({ denyOut: [one] });
    await reached(sandbox, `https://${eight}/`, `https://${one}/`);
    await resolvesAt(sandbox, eight);
    const find = async (destination: string, protocol: string) =>
      (await log(sandbox)).find((entry) => entry.destination === destination && entry.protocol === protocol);
    await expect.poll(() => find(eight, "tcp")).toMatchObject({ port: 443, verdict: "allow" });
    await expect.poll(() => find(one, "tcp")).toMatchObject({ port: 443, verdict: "deny", rule: `denyOut ${one}/32` });
    await expect.poll(() => find(eight, "udp")).toMatchObject({ port: 5300, verdict: "allow" });
  });

  test("has names, rules and bytes of what the egress process decided", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    const started = Date.now();
    await sandbox.commands.run("curl -sk https://google.example/bytes/100000 -o /dev/null");
    await reached(sandbox, `https://${one}/`, "https://plain.example/");
    const find = async (match: Partial<Entry>) => {
      const entries = await log(sandbox);
      return entries.find((entry) =>
        Object.entries(match).every(([name, value]) => entry[name as keyof Entry] === value),
      );
    };
    await expect
      .poll(() => find({ protocol: "tcp", name: "google.example" }))
      .toMatchObject({ verdict: "allow", rule: "allowOut google.example", port: 443 });
    await expect
      .poll(async () => (await find({ protocol: "tcp", name: "google.example" }))?.receivedBytes)
      .toBeGreaterThan(100_000);
    await expect
      .poll(() => find({ destination: one }))
      .toMatchObject({ verdict: "deny", rule: `denyOut ${ALL_TRAFFIC}` });
    await expect.poll(() => find({ protocol: "dns", name: "plain.example" })).toMatchObject({ verdict: "deny" });
    for (const { timestamp } of await log(sandbox)) {
      expect(Date.parse(timestamp)).toBeGreaterThan(started - 5000);
      expect(Date.parse(timestamp)).toBeLessThan(Date.now() + 5000);
    }
  });

  test("has the addresses that are denied under every policy", async () => {
    const sandbox = await sandboxWith();
    await triedBriefly(sandbox, "http://169.254.200.1/");
    await expect
      .poll(async () => (await log(sandbox)).find(({ destination }) => destination === "169.254.200.1"))
      .toMatchObject({ verdict: "deny", rule: "always 169.254.0.0/16" });
  });

  test("is still there after a pause", async () => {
    const sandbox = await sandboxWith({ denyOut: [one] });
    await reached(sandbox, `https://${one}/`);
    const denied = async () => (await log(sandbox)).filter(({ destination }) => destination === one);
    await expect.poll(async () => (await denied()).length).toBeGreaterThan(0);
    const before = await denied();
    await pauseAndResume(sandbox);
    expect(await denied()).toEqual(expect.arrayContaining([...before]));
  });

  test("is bounded: a flood is counted, not kept", async () => {
    const sandbox = await sandboxWith({ allowOut: ["google.example"], denyOut: NOTHING });
    await sandbox.commands.run(
      "for i in $(seq 20); do for j in $(seq 100); do echo https://198.51.100.$j:$((1000 + i))/; done; done | xargs -P 4 -n 500 curl -sk -m 2 || true",
      { timeoutMs: 200_000 },
    );
    // The node writes its decisions down once a second.
    const counted = async () => {
      const reply = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}/network/log?limit=1000`);
      const { entries, suppressed } = reply.json as { entries: readonly Entry[]; suppressed: number };
      expect(entries.length).toBeLessThanOrEqual(1000);
      return entries.reduce((sum, { count }) => sum + count, 0) + suppressed;
    };
    await expect.poll(counted).toBeGreaterThan(1000);
  });

  test("is each sandbox's own, and needs a key of its project", async () => {
    const sandbox = await sandboxWith();
    await reached(sandbox, `https://${eight}/`);
    const other = await sandboxWith();
    expect(await log(other)).toEqual([]);
    const path = `/sandboxes/${sandbox.sandboxId}/network/log`;
    expect((await api(platform, "GET", path, { key: null })).status).toBe(401);
    expect((await api(platform, "GET", "/sandboxes/i0000000000000000000/network/log")).status).toBe(404);
  });
});
