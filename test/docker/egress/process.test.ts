/**
 * The egress process behind a real redirect, with an internet of its own: what leaves, where it arrives, what the process
 * reports.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CLOSED, type EgressPolicy, OPEN } from "../../../shared/policy/egress-policy.ts";
import { clientHello, helloText as hello, inRecords } from "../../support/egress/hello.ts";
import { type Bench, BOX, GATEWAY, openBench } from "../../support/egress/namespaces.ts";
import { ALLOWED, ELSEWHERE, FAR, FIRST, NODE, OTHER, PROXY, SECOND, UNNAMED } from "../../support/egress/plan.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await openBench({ name: "egp" });
  await bench.begin(OPEN, { connectionsPerSandbox: 20 });
});
afterAll(() => bench.stop());
beforeEach(() => {
  bench.seen.length = 0;
});

const names = (...allowDomains: string[]): EgressPolicy => ({ ...CLOSED, allowDomains });
const refused = { how: "reset", code: "ECONNRESET" };

describe("by address", () => {
  test("a connection arrives at the address that the sandbox used, with the node as its source", async () => {
    await bench.policy(names("allowed.test"));
    await bench.policy({ ...names("allowed.test"), allowRanges: [FIRST] });
    const outcome = await bench.attempt({ address: FAR, port: 8443, send: ["hi"], until: "hi" });
    expect(outcome.received).toBe(`[${FAR}:8443] hi`);
    expect(bench.arrivals()).toMatchObject([{ address: FAR, from: NODE }]);
  });

  test("a connection that no rule allows is reset, and nothing arrives", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [FIRST] });
    expect(await bench.attempt({ address: ALLOWED, port: 8443, send: ["hi"] })).toMatchObject(refused);
    expect(bench.seen).toEqual([]);
  });

  test("the greeting of a server that speaks first arrives", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [`${ALLOWED}/32`] });
    let soonest = Number.POSITIVE_INFINITY;
    // The greeting does not wait for the five seconds that a client has to speak first; a busy machine may.
    for (let tries = 0; tries < 10 && soonest > 4_500; tries++) {
      const outcome = await bench.attempt({ address: ALLOWED, port: 22, until: "SSH" });
      expect(outcome).toMatchObject({ received: "SSH-2.0-test\r\n", how: "seen" });
      soonest = Math.min(soonest, outcome.ms);
    }
    expect(soonest).toBeLessThan(4_500);
  });

  test("the end of one direction is passed on, and the other one goes on", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [SECOND] });
    const outcome = await bench.attempt({ address: ALLOWED, port: 11371, send: ["12345"], end: true });
    expect(outcome).toMatchObject({ received: "got 5", how: "end" });
  });

  test("a reset by the destination reaches the sandbox as a reset, not as an end", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [SECOND] });
    const outcome = await bench.attempt({ address: ALLOWED, port: 5002 });
    expect(outcome).toMatchObject({ ...refused, received: "some" });
  });

  test.each(["10.77.0.5", "169.254.169.254", "168.63.129.16", NODE, GATEWAY])(
    "%s is refused under a policy that allows everything",
    async (address) => {
      await bench.policy({ ...names("*"), allowRanges: ["0.0.0.0/0"] });
      const outcome = await bench.attempt({ address, port: 8443, send: ["hi"] });
      expect(outcome.how).toBe("reset");
      expect(bench.seen).toEqual([]);
    },
  );
});

describe("by name", () => {
  test("an allowed name is dialled where it really is, not at the address that the sandbox used", async () => {
    await bench.policy(names("allowed.test"));
    const first = await hello("allowed.test");
    const outcome = await bench.attempt({
      address: ELSEWHERE,
      port: 443,
      send: [first],
      until: first.slice(-20),
    });
    expect(outcome.received).toContain(`[${ALLOWED}:443] ${first.slice(0, 20)}`);
    expect(bench.arrivals()).toMatchObject([{ address: ALLOWED, port: 443 }]);
  });

  test("a ClientHello in single bytes and many records is read like a whole one", async () => {
    await bench.policy(names("allowed.test"));
    const records = inRecords(await clientHello("allowed.test"), 7).toString("latin1");
    const outcome = await bench.attempt({
      address: ELSEWHERE,
      port: 443,
      send: records.match(/[\s\S]/g) ?? [],
      until: records.slice(-9),
    });
    expect(outcome.how).toBe("seen");
    expect(bench.arrivals()[0]).toMatchObject({ address: ALLOWED, first: records.slice(0, 200) });
  });

  test.each(["www.allowed.test", "badallowed.test", "other.test", "allowed.test.evil.test"])(
    "the name in %s is not taken for allowed.test",
    async (name) => {
      await bench.policy(names("allowed.test"));
      const outcome = await bench.attempt({ address: ALLOWED, port: 443, send: [await hello(name)] });
      expect(outcome).toMatchObject(refused);
      expect(bench.seen).toEqual([]);
    },
  );

  test("only the address decides about a connection without a name, or on another port", async () => {
    await bench.policy(names("allowed.test"));
    for (const attempt of [
      { port: 443, send: [await hello()] },
      { port: 443, send: ["garbage\r\n\r\n"] },
      { port: 8443, send: [await hello("allowed.test")] },
      { port: 80, send: ["GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: other.test\r\n\r\n"] },
      { port: 80, send: ["CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test\r\n\r\n"] },
    ]) {
      expect(await bench.attempt({ address: ALLOWED, ...attempt })).toMatchObject(refused);
    }
    expect(bench.seen).toEqual([]);
  });

  test("the connection of a silent client is decided by its address after five seconds", async () => {
    await bench.policy(names("allowed.test"));
    const outcome = await bench.attempt({ address: ALLOWED, port: 443, limitMs: 60_000 });
    expect(outcome).toMatchObject(refused);
    expect(outcome.ms).toBeGreaterThan(4_000);
  });

  test.each(["metadata.test", "node.test"])("%s leads to an address that is always denied", async (name) => {
    await bench.policy(names("*"));
    expect(await bench.attempt({ address: ALLOWED, port: 443, send: [await hello(name)] })).toMatchObject(refused);
    expect(bench.arrivals()).toEqual([]);
  });

  test("of several addresses the forbidden are left out, and the dead passed over", async () => {
    await bench.policy(names("*"));
    const mixed = await hello("mixed.test");
    expect((await bench.attempt({ address: UNNAMED, port: 443, send: [mixed], until: "]" })).received).toContain(
      `[${ALLOWED}:443]`,
    );
  });

  test("a name that rebinds never reaches the other address", async () => {
    await bench.policy(names("rebind.test"));
    const first = await hello("rebind.test");
    const hows = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      hows.add((await bench.attempt({ address: UNNAMED, port: 443, send: [first], until: "]" })).how);
    }
    expect(hows).toEqual(new Set(["seen", "reset"]));
    expect(new Set(bench.arrivals().map(({ address }) => address))).toEqual(new Set([ALLOWED]));
  });

  test("a rule is no permission: the policy decides about the host's addresses as well", async () => {
    const rules = [{ host: "other.test", headers: {} }];
    await bench.policy({ ...CLOSED, allowRanges: [`${ALLOWED}/32`], rules });
    const outcome = await bench.attempt({ address: ALLOWED, port: 443, send: [await hello("other.test")] });
    expect(outcome).toMatchObject(refused);
    expect(bench.arrivals()).toEqual([]);
  });
});

describe("plain HTTP by name", () => {
  const get = (host: string, path = "/") => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

  test("a request arrives at its host, not at the address that the sandbox used", async () => {
    await bench.policy(names("allowed.test"));
    const send = [get("Allowed.TEST:80", "/here")];
    const outcome = await bench.attempt({ address: ELSEWHERE, port: 80, send, until: "served by" });
    expect(outcome.received).toContain("HTTP/1.1 200");
    expect(outcome.received).toContain(`served by ${ALLOWED}`);
    expect(bench.requests()).toMatchObject([{ address: ALLOWED, host: "allowed.test:80", path: "/here" }]);
  });

  test("a later request on the same connection does not reach another host", async () => {
    await bench.policy(names("allowed.test"));
    const send = [get("allowed.test", "/one"), get("other.test", "/two"), get("allowed.test", "/three")];
    const outcome = await bench.attempt({ address: ALLOWED, port: 80, send, limitMs: 20_000 });
    expect(outcome.received).toContain("HTTP/1.1 200");
    const again = { address: ALLOWED, port: 80, send: [get("allowed.test", "/last")], until: "served by" };
    await bench.attempt(again);
    await expect.poll(() => bench.requests().map(({ path }) => path)).toContain("/last");
    expect(bench.requests().map(({ path }) => path)).not.toContain("/two");
    expect(bench.requests()[0]).toMatchObject({ path: "/one" });
  });

  test("a request over plain HTTP to another host is refused", async () => {
    await bench.policy(names("allowed.test"));
    const outcome = await bench.attempt({ address: ALLOWED, port: 80, send: [get("other.test")] });
    expect(outcome).toMatchObject(refused);
    expect(bench.seen).toEqual([]);
  });

  test("a request to an allowed address is neither read nor changed", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [`${OTHER}/32`] });
    const send = ["GET /odd HTTP/1.1\r\nHost: a\r\nX-Odd:  two  spaces\r\n\r\n"];
    await bench.attempt({ address: OTHER, port: 80, send, until: "served by" });
    expect(bench.requests()).toMatchObject([{ address: OTHER, path: "/odd" }]);
  });

  test("a rule sets its headers, through a proxy as well", async () => {
    const rules = [{ host: "allowed.test", headers: { "x-added": "yes" } }];
    await bench.policy({ ...names("allowed.test"), rules });
    const attempt = { address: ALLOWED, port: 80, send: [get("allowed.test")], until: "served by" };
    expect(await bench.attempt(attempt)).toMatchObject({ how: "seen" });
    await bench.policy({ ...names("allowed.test"), rules, proxy: { host: PROXY, port: 1080 } });
    expect(await bench.attempt(attempt)).toMatchObject({ how: "seen" });
    await expect.poll(() => bench.requests()).toMatchObject([{ added: "yes" }, { added: "yes" }]);
    expect(bench.seen.filter(({ is }) => is === "socks")).toMatchObject([{ host: "allowed.test", kind: 3 }]);
  });
});

describe("through an egress proxy", () => {
  const proxy = { host: PROXY, port: 1080 };
  const tunnels = () => bench.seen.filter((seen) => seen.is === "socks");

  test("a connection by name asks for the name, and one by address for the address", async () => {
    await bench.policy({ ...names("allowed.test"), allowRanges: [`${FAR}/32`], proxy });
    const first = await hello("allowed.test");
    await bench.attempt({ address: UNNAMED, port: 443, send: [first], until: "]" });
    await bench.attempt({ address: FAR, port: 22, until: "SSH" });
    expect(tunnels()).toMatchObject([
      { host: "allowed.test", port: 443, kind: 3 },
      { host: FAR, port: 22, kind: 1 },
    ]);
    // The node itself has opened connections to the proxy only.
    expect(bench.arrivals().every(({ from }) => from !== NODE)).toBe(true);
  });

  test("private addresses can be reached, but a proxy in a private range is not used", async () => {
    await bench.policy({ ...OPEN, proxy });
    const behind = await bench.attempt({ address: "10.77.0.5", port: 8443, send: ["hi"], until: "hi" });
    expect(behind.received).toBe("[10.77.0.5:8443] hi");
    await bench.policy({ ...OPEN, proxy: { host: "10.77.0.9", port: 1080 } });
    bench.seen.length = 0;
    expect(await bench.attempt({ address: FAR, port: 22 })).toMatchObject(refused);
    expect(bench.seen).toEqual([]);
  });

  test("the proxy's name is resolved, and the proxy gets its user and password", async () => {
    await bench.policy({ ...OPEN, proxy: { host: "proxy.test", port: 1080, username: "user", password: "secret" } });
    await bench.attempt({ address: FAR, port: 22, until: "SSH" });
    expect(tunnels()).toMatchObject([{ host: FAR, user: "user" }]);
  });

  test.each([
    { host: PROXY, port: 1080, username: "user", password: "wrong" },
    { host: PROXY, port: 9 },
    { host: PROXY, port: 22 },
    { host: "nowhere.test", port: 1080 },
    { host: PROXY, port: 1080, username: "u".repeat(256) },
  ])("nothing reaches the destination directly when the proxy does not work: %o", async (proxy) => {
    await bench.policy({ ...OPEN, proxy });
    expect(await bench.attempt({ address: FAR, port: 8443, send: ["hi"] })).toMatchObject(refused);
    expect(bench.arrivals().filter(({ address }) => address === FAR)).toEqual([]);
  });
});

describe("a change of policy", () => {
  test("cuts the connections that it forbids, and no others", async () => {
    const allowRanges = [SECOND, FIRST];
    await bench.policy({ ...names("allowed.test"), allowRanges });
    const goes = bench.attempt({ address: ALLOWED, port: 8443, send: ["a"], limitMs: 6_000 });
    const cut = bench.attempt({ address: FAR, port: 8443, send: ["a"], limitMs: 60_000 });
    await expect.poll(() => bench.arrivals().length).toBe(2);
    await bench.policy({ ...names("allowed.test"), allowRanges: [SECOND] });
    expect(await cut).toMatchObject(refused);
    expect(await goes).toMatchObject({ how: "late" });
  });

  test("cuts connections that would now go through a proxy", async () => {
    const policy = { ...names("allowed.test"), allowRanges: [SECOND] };
    await bench.policy(policy);
    const cut = bench.attempt({ address: ALLOWED, port: 8443, send: ["a"], limitMs: 60_000 });
    await expect.poll(() => bench.arrivals().length).toBe(1);
    await bench.policy({ ...policy, proxy: { host: PROXY, port: 1080 } });
    expect(await cut).toMatchObject(refused);
  });

  test("that forgets a sandbox's address cuts its connections and refuses new ones", async () => {
    const policy = { ...names("allowed.test"), allowRanges: [SECOND] };
    await bench.policy(policy);
    const cut = bench.attempt({ address: ALLOWED, port: 8443, send: ["a"], limitMs: 60_000 });
    await expect.poll(() => bench.arrivals().length).toBe(1);
    expect(await bench.ask({ is: "forget", address: BOX })).toMatchObject({ is: "done" });
    expect(await cut).toMatchObject(refused);
    bench.seen.length = 0;
    expect(await bench.attempt({ address: ALLOWED, port: 8443, send: ["a"] })).toMatchObject(refused);
    expect(bench.seen).toEqual([]);
  });
});

describe("log entries", () => {
  const entries = () => bench.messages.flatMap((message) => (message.is === "decisions" ? message.entries : []));

  test("flows are logged with their name, rule and bytes, equal ones together", async () => {
    bench.messages.length = 0;
    await bench.policy({ ...names("allowed.test"), allowRanges: [FIRST] });
    await bench.attempt({ address: FAR, port: 11371, send: ["12345"], end: true });
    for (const _ of [1, 2, 3]) await bench.attempt({ address: ALLOWED, port: 443, send: [await hello("other.test")] });
    await expect.poll(entries).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          address: FAR,
          rule: `allowOut ${FIRST}`,
          sentBytes: 5,
          receivedBytes: 5,
        }),
        expect.objectContaining({ name: "other.test", verdict: "deny", rule: "denyOut 0.0.0.0/0", count: 3 }),
      ]),
    );
  });

  test("too many connections at once are refused and logged", async () => {
    bench.messages.length = 0;
    await bench.policy({ ...names("allowed.test"), allowRanges: [SECOND] });
    const one = { address: ALLOWED, port: 8443, send: ["a"], limitMs: 20_000 };
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => bench.attempt(one)));
    const held = outcomes.filter(({ how }) => how === "late").length;
    // Connections of earlier tests may still be ending, and count until they have ended.
    expect(held).toBeLessThanOrEqual(20);
    expect(held).toBeGreaterThan(10);
    const refused = () =>
      entries().reduce((sum, { rule, count }) => sum + (rule === "limit connections" ? count : 0), 0);
    await expect.poll(refused).toBe(30 - held);
  });

  test("a check answers what a connection would get", async () => {
    await bench.policy(names("allowed.test", "metadata.test"));
    const check = (hostname: string, port = 443) =>
      bench.ask({ is: "check", address: BOX, flow: { hostname, port, protocol: "tcp" } });
    expect(await check("Allowed.Test.")).toMatchObject({ decision: { verdict: "allow" }, addresses: [ALLOWED] });
    expect(await check("allowed.test", 22)).toMatchObject({ decision: { verdict: "deny", rule: "denyOut 0.0.0.0/0" } });
    expect(await check("other.test")).toMatchObject({ decision: { verdict: "deny" }, addresses: [] });
    expect(await check("metadata.test")).toMatchObject({ decision: { rule: "always 169.254.0.0/16" } });
    expect(await check("not a name")).toMatchObject({ is: "failed" });
  });
});
