/** Network options on a node: updates that the node refuses, loses or delays, its answer about one flow, and its log. */

import { describe, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { ALL, networkOn, sharedNetworkCluster } from "./network-options.ts";

const cluster = sharedNetworkCluster();

const { create, read } = sandboxesOn(cluster);
const { changeOf, executionOf, pauseAndResume, policyOf, put } = networkOn(cluster);

describe("an update that the node", () => {
  test("refuses changes neither the node nor the record, and the caller gets the node's message", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    const before = policyOf(sandboxID);
    const told: EgressPolicy[] = [];
    cluster().agent.onEgress = (policy, set) => {
      told.push(policy);
      if (told.length === 1) throw new AppError("unavailable", "the firewall said no");
      set();
    };
    expect((await put(sandboxID, { denyOut: [ALL] })).body).toMatchObject({
      code: 503,
      message: "the firewall said no",
    });
    expect(told).toEqual([{ ...OPEN, denyRanges: [ALL] }, before]);
    expect(policyOf(sandboxID)).toEqual(before);
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
    expect((await put(sandboxID, { denyOut: ["2.2.2.2"] })).status).toBe(204);
  });

  test("carries out although the sandbox does not answer is kept, and the error names the missing part", async () => {
    const { sandboxID } = await create();
    cluster().agent.trust = "not applied";
    const rules = { "api.example": [{ transform: { headers: { "x-rule": "1" } } }] };
    const answer = await put(sandboxID, { denyOut: [ALL], rules });
    cluster().agent.trust = "applied";
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("the new network policy is in force, but the sandbox does not answer");
    expect(policyOf(sandboxID)).toMatchObject({ denyRanges: [ALL], rules: [{ host: "api.example" }] });
    expect((await read(sandboxID)).network).toEqual({ denyOut: [ALL], rules });
    expect(await changeOf(sandboxID)).toBeNull();
    expect((await put(sandboxID, { denyOut: [ALL], rules })).status).toBe(204);
  });

  test("can neither finish nor undo is undone as soon as possible", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    const live = cluster().agent.live.get(executionOf(sandboxID));
    if (live === undefined) throw new Error("the sandbox does not run");
    let left = 4;
    cluster().agent.onEgress = (_policy, set) => {
      if (left-- > 0) {
        // The node closes the link and cannot open it again.
        live.egress = CLOSED;
        throw new AppError("internal", "broken");
      }
      set();
    };
    expect((await put(sandboxID, { denyOut: [ALL] })).status).toBe(500);
    expect(left).toBeLessThan(4);
    await expect.poll(() => policyOf(sandboxID)).toEqual({ ...OPEN, denyRanges: ["1.1.1.1/32"] });
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  test("has carried out without an answer is in the node and in the record soon after", async () => {
    const { sandboxID } = await create();
    let silent = true;
    cluster().agent.onEgress = (_policy, set) => {
      set();
      if (silent) throw new AppError("node_unreachable", "no answer");
    };
    expect((await put(sandboxID, { denyOut: ["3.3.3.3"] })).status).toBe(503);
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["3.3.3.3/32"]);
    expect(await read(sandboxID)).not.toHaveProperty("network");
    silent = false;
    await expect.poll(async () => (await read(sandboxID)).network).toEqual({ denyOut: ["3.3.3.3"] });
  });

  test("had received when the orchestrator died is in the node and in the record after the restart", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    const reached = gateway();
    let dead = true;
    cluster().agent.onEgress = (_policy, set) => {
      reached.resolve();
      if (dead) throw new AppError("node_unreachable", "no answer");
      set();
    };
    const cut = put(sandboxID, { denyOut: [ALL] }).catch(() => undefined);
    await reached.promise;
    await cluster().restart({}, () => {
      dead = false;
    });
    await cut;
    await cluster().agent.beat();
    await expect.poll(() => policyOf(sandboxID)).toEqual(CLOSED);
    await expect.poll(async () => (await read(sandboxID)).network).toEqual({ denyOut: [ALL] });
  });

  test("has not answered when the sandbox is paused: the resume uses the options of its record", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    cluster().agent.onEgress = () => {
      throw new AppError("node_unreachable", "no answer");
    };
    expect((await put(sandboxID, { denyOut: [ALL] })).status).toBe(503);
    expect(await changeOf(sandboxID)).toEqual(expect.any(String));
    await pauseAndResume(sandboxID);
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["1.1.1.1/32"]);
    cluster().agent.onEgress = (_policy, set) => set();
    // The orchestrator drops a change of the earlier execution, and does not apply it to this one.
    await expect.poll(() => changeOf(sandboxID)).toBeNull();
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["1.1.1.1/32"]);
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  test("is at work on does not hold up a kill", async () => {
    const { sandboxID } = await create();
    const held = gateway();
    const reached = gateway();
    cluster().agent.onEgress = async () => {
      reached.resolve();
      await held.promise;
    };
    const change = put(sandboxID, { denyOut: [ALL] });
    await reached.promise;
    expect((await cluster().ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    held.resolve();
    expect([404, 409]).toContain((await change).status);
    expect((await read(sandboxID)) as object).toMatchObject({ code: 404 });
  });
});

describe("the check route", () => {
  const ask = (id: string, query: string) => cluster().ask("GET", `/sandboxes/${id}/network/check?${query}`);

  test("asks the node about the normalised name and returns the node's answer", async () => {
    const { sandboxID } = await create({ network: { allowOut: ["a.com"], denyOut: [ALL] } });
    cluster().agent.onCheck = ({ allowDomains }) => ({
      verdict: "allow",
      rule: `allowOut ${allowDomains[0] ?? ""}`,
      reason: "the name is allowed",
      dial: "hostname",
      via: "egressProxy",
      transform: "a.com",
      addresses: ["203.0.113.7"],
    });
    expect((await ask(sandboxID, "host=A.COM.&port=443")).body).toEqual({
      verdict: "allow",
      rule: "allowOut a.com",
      reason: "the name is allowed",
      via: "egressProxy",
      transform: "a.com",
      addresses: ["203.0.113.7"],
    });
    expect(cluster().agent.checks.at(-1)).toEqual({ host: "a.com", port: 443, protocol: "tcp" });
    await ask(sandboxID, `host=${encodeURIComponent("bücher.example")}&port=80`);
    await ask(sandboxID, "host=203.0.113.7&port=53&protocol=udp");
    expect(cluster().agent.checks.slice(-2)).toEqual([
      { host: "xn--bcher-kva.example", port: 80, protocol: "tcp" },
      { host: "203.0.113.7", port: 53, protocol: "udp" },
    ]);
  });

  test.each([
    "port=443",
    "host=a.com",
    "host=&port=443",
    "host=a.com&port=0",
    "host=a.com&port=65536",
    "host=a.com&port=x",
    "host=a.com&port=1&protocol=icmp",
    "host=a%20b&port=1",
    "host=a%00.com&port=1",
    "host=*.com&port=1",
    "host=127.1&port=1",
    "host=2130706433&port=1",
    "host=%5B::1%5D&port=1",
    `host=${"a".repeat(300)}&port=1`,
  ])("refuses the query %s", async (query) => {
    const { sandboxID } = await create();
    expect((await ask(sandboxID, query)).status).toBe(400);
  });

  test.each(["https://a.com/v1", "a.com:443", " a.com"])(
    "refuses the host '%s', and says what to write",
    async (host) => {
      const { sandboxID } = await create();
      const { status, body } = await ask(sandboxID, `host=${encodeURIComponent(host)}&port=443`);
      expect([status, body]).toMatchObject([
        400,
        { message: "query field 'host' must be a host name or an IPv4 address: write 'a.com'" },
      ]);
    },
  );

  test("is 404 for a missing or foreign sandbox, 409 for one that does not run", async () => {
    expect((await ask("inosuchsandbox", "host=a.com&port=1")).status).toBe(404);
    const { sandboxID } = await create();
    const { key } = await cluster().addProject("another");
    const path = `/sandboxes/${sandboxID}/network/check?host=a.com&port=1`;
    expect((await cluster().ask("GET", path, { key })).status).toBe(404);
    expect((await cluster().ask("GET", path, { key: null })).status).toBe(401);
    await cluster().ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
    expect((await ask(sandboxID, "host=a.com&port=1")).status).toBe(409);
  });
});

describe("the log route", () => {
  const entry = (at: number) => ({
    at,
    protocol: "tcp" as const,
    address: "203.0.113.7",
    port: 443,
    name: "a.com",
    verdict: "deny" as const,
    rule: "denyOut 0.0.0.0/0",
    count: 2,
    sentBytes: 517,
    receivedBytes: 0,
  });
  const ask = (id: string, query = "") => cluster().ask("GET", `/sandboxes/${id}/network/log${query}`);

  test("returns the node's decisions from a cursor, and the number of decisions that were not logged", async () => {
    const { sandboxID } = await create();
    cluster().agent.networkLog = { entries: [1000, 2000, 3000].map(entry), suppressed: 7 };
    const { at: _, address, ...rest } = entry(0);
    const shown = (second: number) => ({
      timestamp: `1970-01-01T00:00:0${second}.000Z`,
      destination: address,
      ...rest,
      reason: 'denyOut 0.0.0.0/0 forbids it, and nothing allows it: add "a.com" to allowOut',
    });
    expect((await ask(sandboxID)).body).toEqual({ entries: [shown(1), shown(2), shown(3)], suppressed: 7 });
    expect((await ask(sandboxID, "?limit=1")).body).toMatchObject({ entries: [shown(3)] });
    expect((await ask(sandboxID, "?cursor=2000&limit=1")).body).toMatchObject({ entries: [shown(2)] });
  });

  test.each(["?limit=0", "?limit=1001", "?cursor=-1", "?cursor=yesterday"])("refuses the query %s", async (query) => {
    const { sandboxID } = await create();
    expect((await ask(sandboxID, query)).status).toBe(400);
  });

  test("is 404 for a missing sandbox, and never fails for a paused one", async () => {
    expect((await ask("inosuchsandbox")).status).toBe(404);
    const { sandboxID } = await create();
    await cluster().ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
    cluster().agent.networkLog = { entries: [entry(1000)], suppressed: 0 };
    expect((await ask(sandboxID)).body).toMatchObject({ entries: [{ name: "a.com" }] });
    // The node fails to report its log.
    cluster().agent.networkLog = undefined as never;
    expect((await ask(sandboxID)).body).toEqual({ entries: [], suppressed: 0 });
    cluster().agent.networkLog = { entries: [], suppressed: 0 };
  });
});
