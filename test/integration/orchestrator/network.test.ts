/** The network options of a sandbox: sent to its node, replaced while it runs, kept over pauses, explained and looked up. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox, SandboxDetail } from "../../../shared/api/sandbox-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../shared/policy/egress-policy.ts";
import { type Answer, type Cluster, startCluster } from "../../support/fakes/cluster.ts";

const ALL = "0.0.0.0/0";
const PROXY = { address: "198.51.100.1:1080", username: "me" };

let cluster: Cluster;
beforeAll(async () => {
  const config = { patienceMs: 300, networkTimeoutMs: 2_000, reconcileEveryMs: 50, egressProxyAllow: "10.9.0.0/16" };
  cluster = await startCluster({ config });
});
beforeEach(() => {
  cluster.agent.onEgress = (_policy, set) => set();
});
afterAll(() => cluster.stop());

async function create(body: object = {}): Promise<Sandbox> {
  const answer = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as Sandbox;
}

async function read(id: string): Promise<SandboxDetail> {
  return (await cluster.ask("GET", `/sandboxes/${id}`)).body as SandboxDetail;
}

function put(id: string, body: object): Promise<Answer> {
  return cluster.ask("PUT", `/sandboxes/${id}/network`, { body });
}

/** What the record says of a change under way. */
async function changeOf(id: string): Promise<unknown> {
  const [found] = await cluster.database.query("select network_change from sandboxes where id = ?", id);
  return found?.["network_change"];
}

/** Of the running execution; undefined when there is none. */
function policyOf(id: string): EgressPolicy | undefined {
  return [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === id)?.egress;
}

function executionOf(id: string): string {
  const [executionId = ""] = [...cluster.agent.live].find(([, { body }]) => body.sandboxId === id) ?? [];
  return executionId;
}

async function pauseAndResume(id: string): Promise<void> {
  expect((await cluster.ask("POST", `/sandboxes/${id}/pause`, { body: {} })).status).toBe(204);
  expect((await cluster.ask("POST", `/v2/sandboxes/${id}/connect`, { body: {} })).status).toBe(201);
}

describe("a create", () => {
  test("gives the node one policy and reads back the options as written", async () => {
    const network = {
      allowOut: ["Google.COM", "8.8.8.8"],
      denyOut: [ALL],
      rules: { "API.example.com": [{ transform: { headers: { Authorization: "Bearer KEY" } } }] },
      egressProxy: { ...PROXY, password: "hunter2-secret" },
    };
    const { sandboxID } = await create({ network });
    const headers = { Authorization: "Bearer KEY" };
    expect(policyOf(sandboxID)).toEqual({
      allowRanges: ["8.8.8.8/32"],
      allowDomains: ["google.com"],
      denyRanges: [ALL],
      rules: [{ host: "api.example.com", headers }],
      proxy: { host: "198.51.100.1", port: 1080, username: "me", password: "hunter2-secret" },
    });
    expect((await read(sandboxID)).network).toEqual({
      ...network,
      rules: { "api.example.com": [{ transform: { headers } }] },
      egressProxy: PROXY,
    });
  });

  test("may have a proxy in a range that the operator allows", async () => {
    const { sandboxID } = await create({ network: { egressProxy: { address: "10.9.0.1:1080" } } });
    expect(policyOf(sandboxID)?.proxy).toEqual({ host: "10.9.0.1", port: 1080 });
  });
});

test("a proxy's password is in no answer and not readable in the database", async () => {
  const password = "a-password-that-is-nowhere";
  const { sandboxID } = await create({ network: { egressProxy: { ...PROXY, password } } });
  const other = `${password}-2`;
  expect((await put(sandboxID, { egressProxy: { ...PROXY, password: other } })).status).toBe(204);
  expect(policyOf(sandboxID)?.proxy?.password).toBe(other);
  const answers = await Promise.all(
    [`/sandboxes/${sandboxID}`, "/v2/sandboxes", `/events/sandboxes/${sandboxID}`].map((path) =>
      cluster.ask("GET", path),
    ),
  );
  for (const { status, text } of answers) {
    expect(status).toBe(200);
    expect(text).not.toContain(password);
  }
  expect(await cluster.database.stored()).not.toContain(password);
});

describe("an update", () => {
  test("replaces all of egress and nothing of ingress", async () => {
    const ingress = { allowPublicTraffic: false, maskRequestHost: "localhost:${PORT}", httpsPorts: [8443] };
    const { sandboxID } = await create({ network: { ...ingress, denyOut: ["1.1.1.1"] }, allow_internet_access: true });
    const steps: readonly (readonly [object, Partial<EgressPolicy>, boolean | null])[] = [
      [{ denyOut: [ALL] }, { denyRanges: [ALL] }, null],
      [{ allowOut: ["8.8.8.8"], denyOut: [ALL] }, { allowRanges: ["8.8.8.8/32"], denyRanges: [ALL] }, null],
      [{ allowOut: ["a.com"], denyOut: [ALL] }, { allowDomains: ["a.com"], denyRanges: [ALL] }, null],
      [{ egressProxy: PROXY }, { proxy: { host: "198.51.100.1", port: 1080, username: "me" } }, null],
      [
        { allow_internet_access: false, allowOut: ["8.8.8.8"] },
        { allowRanges: ["8.8.8.8/32"], denyRanges: [ALL] },
        false,
      ],
      [{ allow_internet_access: true }, {}, true],
      [{ allow_internet_access: false }, { denyRanges: [ALL] }, false],
      [{}, {}, null],
    ];
    for (const [body, expected, internet] of steps) {
      expect((await put(sandboxID, body)).status).toBe(204);
      expect(policyOf(sandboxID)).toEqual({ ...OPEN, ...expected });
      const { allow_internet_access: _, ...shown } = body as { allow_internet_access?: boolean };
      const detail = await read(sandboxID);
      expect(detail.network).toEqual({ ...ingress, ...shown });
      expect(detail.allowInternetAccess).toBe(internet);
    }
  });

  test("that clears everything leaves nothing to read back", async () => {
    const { sandboxID } = await create({ network: { denyOut: [ALL] }, allow_internet_access: false });
    expect(policyOf(sandboxID)).toEqual(CLOSED);
    expect((await put(sandboxID, {})).status).toBe(204);
    expect(policyOf(sandboxID)).toEqual(OPEN);
    expect(await read(sandboxID)).not.toHaveProperty("network");
  });

  test("is one event, without credentials", async () => {
    const { sandboxID } = await create();
    const rules = { "a.com": [{ transform: { headers: { Authorization: "Bearer abcdef" } } }] };
    await put(sandboxID, { allowOut: ["a.com"], denyOut: [ALL], rules, egressProxy: { ...PROXY, password: "pw" } });
    const events = (await cluster.ask("GET", `/events/sandboxes/${sandboxID}`)).body as {
      type: string;
      eventData: unknown;
    }[];
    const updates = events.filter(({ type }) => type === "sandbox.lifecycle.updated");
    expect(updates.map(({ eventData }) => eventData)).toEqual([
      { network: { allow_out: ["a.com"], deny_out: [ALL], rules: ["a.com"], egress_proxy: PROXY.address } },
    ]);
  });

  test("survives pause and resume, and a restart of the orchestrator", async () => {
    const { sandboxID } = await create();
    await put(sandboxID, {
      allowOut: ["8.8.8.8"],
      allow_internet_access: false,
      egressProxy: { ...PROXY, password: "pw" },
    });
    const before = policyOf(sandboxID);
    expect(before).toMatchObject({ denyRanges: [ALL], proxy: { password: "pw" } });
    await cluster.restart();
    await cluster.agent.beat();
    await pauseAndResume(sandboxID);
    expect(policyOf(sandboxID)).toEqual(before);
    expect(await read(sandboxID)).toMatchObject({ allowInternetAccess: false, network: { allowOut: ["8.8.8.8"] } });
  });

  test("is what forks start with, and not what a new sandbox of a snapshot starts with", async () => {
    const { sandboxID } = await create();
    await put(sandboxID, { denyOut: [ALL], egressProxy: { ...PROXY, password: "pw" } });
    const [fork] = (await cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { body: {} })).body as {
      sandbox: Sandbox;
    }[];
    const copy = fork?.sandbox.sandboxID ?? "";
    expect(policyOf(copy)).toEqual(policyOf(sandboxID));
    expect((await read(copy)).network).toEqual((await read(sandboxID)).network);
    // Its own from here on, and its password opens for itself.
    await put(sandboxID, {});
    await pauseAndResume(copy);
    expect(policyOf(copy)).toMatchObject({ denyRanges: [ALL], proxy: { password: "pw" } });

    const { snapshotID } = (await cluster.ask("POST", `/sandboxes/${copy}/snapshots`, { body: {} })).body as {
      snapshotID: string;
    };
    const fresh = await create({ templateID: snapshotID, network: { denyOut: ["1.1.1.1"] } });
    expect(policyOf(fresh.sandboxID)).toEqual({ ...OPEN, denyRanges: ["1.1.1.1/32"] });
  });

  test("is refused as a create would be, and changes nothing", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    const before = policyOf(sandboxID);
    for (const [body, words] of [
      [{ denyOut: ["example.com"] }, "invalid denied CIDR example.com"],
      [{ denyOut: ["garbage"] }, "invalid denied CIDR garbage"],
      [{ denyOut: [ALL, "example.com"] }, "invalid denied CIDR example.com"],
      [{ allowOut: ["example.com"] }, "ALL_TRAFFIC"],
      [{ allowOut: ["example.com"], denyOut: ["8.8.8.8"] }, "ALL_TRAFFIC"],
      [{ allowOut: ["*.example.com"] }, "ALL_TRAFFIC"],
      [{ allowOut: ["*.example.com"], denyOut: ["8.8.8.8"] }, "ALL_TRAFFIC"],
      [{ allowOut: ["example.com", "8.8.8.8"], denyOut: ["1.1.1.1"] }, "ALL_TRAFFIC"],
      [{ egressProxy: { address: "127.0.0.1:1080" } }, "body field 'egressProxy.address' must not be an internal"],
      [{ rules: { "*": [{}] } }, "invalid rule host '*'"],
      [
        { rules: { "a.com": [{ transform: { headers: { x: "${e2b.secrets.KEY}" } } }] } },
        "has the placeholder ${e2b.secrets.KEY}, but secrets and identity tokens are not available yet",
      ],
      [{ allow_internet_access: "no" }, "allow_internet_access"],
    ] as const) {
      const answer = await put(sandboxID, body);
      expect(answer.status, JSON.stringify(body)).toBe(400);
      expect((answer.body as { message: string }).message).toContain(words);
    }
    expect(policyOf(sandboxID)).toBe(before);
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  test("is 404 for a missing or foreign sandbox, 401 without a key, 409 for one that does not run", async () => {
    expect((await put("inosuchsandbox", {})).body).toMatchObject({
      code: 404,
      message: `Sandbox "inosuchsandbox" doesn't exist or you don't have access to it`,
    });
    const { sandboxID } = await create();
    const { key } = await cluster.addProject("somebody else");
    const path = `/sandboxes/${sandboxID}/network`;
    expect((await cluster.ask("PUT", path, { key, body: {} })).status).toBe(404);
    expect((await cluster.ask("PUT", path, { key: null, body: {} })).status).toBe(401);
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
    expect((await put(sandboxID, {})).body).toMatchObject({ code: 409 });
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    expect((await put(sandboxID, {})).status).toBe(404);
  });

  test("of which many come at once: each whole, and the last one read back is in force", async () => {
    const { sandboxID } = await create();
    const bodies = Array.from({ length: 12 }, (_, i) => ({
      denyOut: [`203.0.113.${i}`],
      allowOut: [`198.51.100.${i}`],
    }));
    const answers = await Promise.all(bodies.map((body) => put(sandboxID, body)));
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 204));
    const { network } = await read(sandboxID);
    expect(bodies).toContainEqual(network);
    expect(policyOf(sandboxID)?.denyRanges).toEqual(network?.denyOut?.map((address) => `${address}/32`));
    expect(policyOf(sandboxID)?.allowRanges).toEqual(network?.allowOut?.map((address) => `${address}/32`));
  });
});

describe("an update that the node", () => {
  test("refuses changes neither side, and the caller has its words", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    const before = policyOf(sandboxID);
    const told: EgressPolicy[] = [];
    cluster.agent.onEgress = (policy, set) => {
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

  test("carries out although the sandbox does not answer is kept, and the caller learns which part is missing", async () => {
    const { sandboxID } = await create();
    cluster.agent.trust = "not applied";
    const rules = { "api.example": [{ transform: { headers: { "x-rule": "1" } } }] };
    const answer = await put(sandboxID, { denyOut: [ALL], rules });
    cluster.agent.trust = "applied";
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("the new network policy is in force, but the sandbox does not answer");
    expect(policyOf(sandboxID)).toMatchObject({ denyRanges: [ALL], rules: [{ host: "api.example" }] });
    expect((await read(sandboxID)).network).toEqual({ denyOut: [ALL], rules });
    expect(await changeOf(sandboxID)).toBeNull();
    expect((await put(sandboxID, { denyOut: [ALL], rules })).status).toBe(204);
  });

  test("cannot even go back from is put back as soon as it can", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    let left = 4;
    cluster.agent.onEgress = (_policy, set) => {
      if (left-- > 0) throw new AppError("internal", "broken");
      set();
    };
    expect((await put(sandboxID, { denyOut: [ALL] })).status).toBe(500);
    // As a node that closed the link and could not open it again.
    const live = cluster.agent.live.get(executionOf(sandboxID));
    if (live !== undefined) live.egress = CLOSED;
    await expect.poll(() => policyOf(sandboxID)).toEqual({ ...OPEN, denyRanges: ["1.1.1.1/32"] });
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  test("has carried out without an answer is in both places soon after", async () => {
    const { sandboxID } = await create();
    let silent = true;
    cluster.agent.onEgress = (_policy, set) => {
      set();
      if (silent) throw new AppError("node_unreachable", "no answer");
    };
    expect((await put(sandboxID, { denyOut: ["3.3.3.3"] })).status).toBe(503);
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["3.3.3.3/32"]);
    expect(await read(sandboxID)).not.toHaveProperty("network");
    silent = false;
    await expect.poll(async () => (await read(sandboxID)).network).toEqual({ denyOut: ["3.3.3.3"] });
  });

  test("had got when the orchestrator died is in both places after its restart", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    let asked: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      asked = resolve;
    });
    let dead = true;
    cluster.agent.onEgress = (_policy, set) => {
      asked();
      if (dead) throw new AppError("node_unreachable", "no answer");
      set();
    };
    const cut = put(sandboxID, { denyOut: [ALL] }).catch(() => undefined);
    await reached;
    await cluster.restart({}, () => {
      dead = false;
    });
    await cut;
    await cluster.agent.beat();
    await expect.poll(() => policyOf(sandboxID)).toEqual(CLOSED);
    await expect.poll(async () => (await read(sandboxID)).network).toEqual({ denyOut: [ALL] });
  });

  test("has not answered when the sandbox is paused: the resume uses the options of its record", async () => {
    const { sandboxID } = await create({ network: { denyOut: ["1.1.1.1"] } });
    cluster.agent.onEgress = () => {
      throw new AppError("node_unreachable", "no answer");
    };
    expect((await put(sandboxID, { denyOut: [ALL] })).status).toBe(503);
    expect(await changeOf(sandboxID)).toEqual(expect.any(String));
    await pauseAndResume(sandboxID);
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["1.1.1.1/32"]);
    cluster.agent.onEgress = (_policy, set) => set();
    // The change of the life before is dropped, not carried out on this one.
    await expect.poll(() => changeOf(sandboxID)).toBeNull();
    expect(policyOf(sandboxID)?.denyRanges).toEqual(["1.1.1.1/32"]);
    expect((await read(sandboxID)).network).toEqual({ denyOut: ["1.1.1.1"] });
  });

  test("is at work on does not hold up a kill", async () => {
    const { sandboxID } = await create();
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    let asked: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      asked = resolve;
    });
    cluster.agent.onEgress = async () => {
      asked();
      await held;
    };
    const change = put(sandboxID, { denyOut: [ALL] });
    await reached;
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    go();
    expect([404, 409]).toContain((await change).status);
    expect((await read(sandboxID)) as object).toMatchObject({ code: 404 });
  });
});

describe("the check route", () => {
  const ask = (id: string, query: string) => cluster.ask("GET", `/sandboxes/${id}/network/check?${query}`);

  test("asks the node about the normalised name and returns the node's answer", async () => {
    const { sandboxID } = await create({ network: { allowOut: ["a.com"], denyOut: [ALL] } });
    cluster.agent.onCheck = ({ allowDomains }) => ({
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
    expect(cluster.agent.checks.at(-1)).toEqual({ host: "a.com", port: 443, protocol: "tcp" });
    await ask(sandboxID, `host=${encodeURIComponent("bücher.example")}&port=80`);
    await ask(sandboxID, "host=203.0.113.7&port=53&protocol=udp");
    expect(cluster.agent.checks.slice(-2)).toEqual([
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
  ])("%s is nonsense", async (query) => {
    const { sandboxID } = await create();
    expect((await ask(sandboxID, query)).status).toBe(400);
  });

  test("is 404 for a missing or foreign sandbox, 409 for one that does not run", async () => {
    expect((await ask("inosuchsandbox", "host=a.com&port=1")).status).toBe(404);
    const { sandboxID } = await create();
    const { key } = await cluster.addProject("another");
    const path = `/sandboxes/${sandboxID}/network/check?host=a.com&port=1`;
    expect((await cluster.ask("GET", path, { key })).status).toBe(404);
    expect((await cluster.ask("GET", path, { key: null })).status).toBe(401);
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
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
  const ask = (id: string, query = "") => cluster.ask("GET", `/sandboxes/${id}/network/log${query}`);

  test("shows the decisions of the node, from a cursor, and how many were not written down", async () => {
    const { sandboxID } = await create();
    cluster.agent.networkLog = { entries: [1000, 2000, 3000].map(entry), suppressed: 7 };
    const { at: _, address, ...rest } = entry(0);
    const shown = (second: number) => ({
      timestamp: `1970-01-01T00:00:0${second}.000Z`,
      destination: address,
      ...rest,
    });
    expect((await ask(sandboxID)).body).toEqual({ entries: [shown(1), shown(2), shown(3)], suppressed: 7 });
    expect((await ask(sandboxID, "?limit=1")).body).toMatchObject({ entries: [shown(3)] });
    expect((await ask(sandboxID, "?cursor=2000&limit=1")).body).toMatchObject({ entries: [shown(2)] });
  });

  test.each(["?limit=0", "?limit=1001", "?cursor=-1", "?cursor=yesterday"])("%s is nonsense", async (query) => {
    const { sandboxID } = await create();
    expect((await ask(sandboxID, query)).status).toBe(400);
  });

  test("is 404 for a missing sandbox, and never fails for a paused one", async () => {
    expect((await ask("inosuchsandbox")).status).toBe(404);
    const { sandboxID } = await create();
    await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
    cluster.agent.networkLog = { entries: [entry(1000)], suppressed: 0 };
    expect((await ask(sandboxID)).body).toMatchObject({ entries: [{ name: "a.com" }] });
    // A node that fails to say.
    cluster.agent.networkLog = undefined as never;
    expect((await ask(sandboxID)).body).toEqual({ entries: [], suppressed: 0 });
    cluster.agent.networkLog = { entries: [], suppressed: 0 };
  });
});
