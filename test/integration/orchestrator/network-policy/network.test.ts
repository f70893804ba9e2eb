/**
 * The network options of a sandbox: the node gets them, a client reads them back as written, an update replaces them while
 * it runs, and pauses keep them.
 */

import { describe, expect, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { ALL, networkOn, PROXY, sharedNetworkCluster } from "./network-options.ts";

const cluster = sharedNetworkCluster();

const { create, read } = sandboxesOn(cluster);
const { pauseAndResume, policyOf, put } = networkOn(cluster);

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

describe("a request that would open a closed network by a misspelling", () => {
  const missing = (name: string) => expect.stringContaining(`\`${name}\` is not a field: did you mean \``) as string;

  test.each<[object, string]>([
    [{ network: { denyout: [ALL] } }, "network.denyout"],
    [{ network: { deny_out: [ALL] } }, "network.deny_out"],
    [{ network: { allowPublicTrafic: false } }, "network.allowPublicTrafic"],
    [{ allowInternetAccess: false }, "allowInternetAccess"],
    [{ network: { network: { denyOut: [ALL] } } }, "network.network"],
  ])("is refused when it creates: %j, and nothing starts", async (body, name) => {
    const started = cluster().agent.starts.length;
    for (const path of ["/sandboxes", "/v2/sandboxes"]) {
      const answer = await cluster().ask("POST", path, { body: { templateID: "base", ...body } });
      expect(answer.body).toMatchObject({ code: 400, message: missing(name) });
    }
    expect(cluster().agent.starts).toHaveLength(started);
  });

  test.each<[object, string]>([
    [{ deny_out: [ALL] }, "deny_out"],
    [{ network: { denyOut: [ALL] } }, "network"],
    [{ allowInternetAccess: false }, "allowInternetAccess"],
  ])("is refused when it updates: %j, and the network stays closed", async (body, name) => {
    const { sandboxID } = await create({ network: { denyOut: [ALL] } });
    expect((await put(sandboxID, body)).body).toMatchObject({ code: 400, message: missing(name) });
    expect(policyOf(sandboxID)).toEqual(CLOSED);
    expect((await read(sandboxID)).network).toEqual({ denyOut: [ALL] });
  });

  test("allow_internet_access false closes the network beside domains that are allowed, at create and at update", async () => {
    const body = { allow_internet_access: false, network: { allowOut: ["a.com", "192.0.2.1"] } };
    const { sandboxID } = await create(body);
    const closed = { ...OPEN, allowDomains: ["a.com"], allowRanges: ["192.0.2.1/32"], denyRanges: [ALL] };
    expect(policyOf(sandboxID)).toEqual(closed);
    expect(await read(sandboxID)).toMatchObject({ allowInternetAccess: false, network: body.network });
    expect((await put(sandboxID, {})).status).toBe(204);
    expect((await put(sandboxID, { allow_internet_access: false, ...body.network })).status).toBe(204);
    expect(policyOf(sandboxID)).toEqual(closed);
    for (const internet of [true, undefined]) {
      const open = { allowOut: ["a.com"], allow_internet_access: internet };
      expect((await put(sandboxID, open)).body).toMatchObject({
        code: 400,
        message: expect.stringContaining("ALL_TRAFFIC") as string,
      });
    }
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
      cluster().ask("GET", path),
    ),
  );
  for (const { status, text } of answers) {
    expect(status).toBe(200);
    expect(text).not.toContain(password);
  }
  expect(await cluster().database.stored()).not.toContain(password);
});

describe("an update", () => {
  test("replaces all egress options and no ingress option", async () => {
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

  test("that clears all options leaves none to read back", async () => {
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
    const events = (await cluster().ask("GET", `/events/sandboxes/${sandboxID}`)).body as {
      type: string;
      eventData: unknown;
    }[];
    const updates = events.filter(({ type }) => type === "sandbox.lifecycle.updated");
    expect(updates.map(({ eventData }) => eventData)).toEqual([
      {
        sandbox_metadata: {},
        network_egress: { allowed_cidrs: [], denied_cidrs: [ALL], allowed_domains: ["a.com"] },
        network: { allow_out: ["a.com"], deny_out: [ALL], rules: ["a.com"], egress_proxy: PROXY.address },
      },
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
    await cluster().restart();
    await cluster().agent.beat();
    await pauseAndResume(sandboxID);
    expect(policyOf(sandboxID)).toEqual(before);
    expect(await read(sandboxID)).toMatchObject({ allowInternetAccess: false, network: { allowOut: ["8.8.8.8"] } });
  });

  test("is what forks start with, and not what a new sandbox of a snapshot starts with", async () => {
    const { sandboxID } = await create();
    await put(sandboxID, { denyOut: [ALL], egressProxy: { ...PROXY, password: "pw" } });
    const [fork] = (await cluster().ask("POST", `/sandboxes/${sandboxID}/fork`, { body: {} })).body as {
      sandbox: Sandbox;
    }[];
    const copy = fork?.sandbox.sandboxID ?? "";
    expect(policyOf(copy)).toEqual(policyOf(sandboxID));
    expect((await read(copy)).network).toEqual((await read(sandboxID)).network);
    // From here on the copy has options of its own, and its sealed password opens for its own id.
    await put(sandboxID, {});
    await pauseAndResume(copy);
    expect(policyOf(copy)).toMatchObject({ denyRanges: [ALL], proxy: { password: "pw" } });

    const { snapshotID } = (await cluster().ask("POST", `/sandboxes/${copy}/snapshots`, { body: {} })).body as {
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
        "rules of 'a.com' have the placeholder ${e2b.secrets.KEY}, but the project has no secret 'key'",
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
    const { key } = await cluster().addProject("somebody else");
    const path = `/sandboxes/${sandboxID}/network`;
    expect((await cluster().ask("PUT", path, { key, body: {} })).status).toBe(404);
    expect((await cluster().ask("PUT", path, { key: null, body: {} })).status).toBe(401);
    await cluster().ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} });
    expect((await put(sandboxID, {})).body).toMatchObject({ code: 409 });
    await cluster().ask("DELETE", `/sandboxes/${sandboxID}`);
    expect((await put(sandboxID, {})).status).toBe(404);
  });

  test("among many at once is applied completely, and the options that are read back are in force", async () => {
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
