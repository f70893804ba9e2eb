/** The identity tokens of sandboxes: accepted at create, kept with the sandbox, and the issuer's routes of a running platform. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const TOKENS = {
  aws: { audience: "sts.amazonaws.com", tokenType: "JWT-SVID" },
  "my token (1)": { audience: " Exactly As Given ", tokenType: "JWT-SVID" },
};

async function create(body: object, path = "/v2/sandboxes"): Promise<string> {
  const answer = await cluster.ask("POST", path, { body: { templateID: "base", timeout: 300, ...body } });
  expect(answer.status, answer.text).toBe(201);
  return (answer.body as { sandboxID: string }).sandboxID;
}

async function iamOf(id: string): Promise<SandboxDetail["iam"]> {
  return ((await cluster.ask("GET", `/sandboxes/${id}`)).body as SandboxDetail).iam;
}

test("a sandbox has the tokens of its create over pause and resume, and its forks have them too", async () => {
  const unknown = { aws: { ...TOKENS.aws }, "my token (1)": TOKENS["my token (1)"] };
  const id = await create({ iam: { tokens: unknown } });
  expect(await iamOf(id)).toEqual({ tokens: TOKENS });
  const forks = (await cluster.ask("POST", `/sandboxes/${id}/fork`, { body: { timeout: 60 } })).body as {
    sandbox: { sandboxID: string };
  }[];
  expect(await iamOf(forks[0]?.sandbox.sandboxID ?? "")).toEqual({ tokens: TOKENS });
  expect((await cluster.ask("POST", `/sandboxes/${id}/pause`)).status).toBe(204);
  expect(await iamOf(id)).toEqual({ tokens: TOKENS });
  expect((await cluster.ask("POST", `/v2/sandboxes/${id}/connect`, { body: {} })).status).toBe(201);
  expect(await iamOf(id)).toEqual({ tokens: TOKENS });

  // Whoever starts from a snapshot asks for tokens of its own, as for network rules of its own.
  const taken = (await cluster.ask("POST", `/sandboxes/${id}/snapshots`, { body: {} })).body as { snapshotID: string };
  expect(await iamOf(await create({ templateID: taken.snapshotID }))).toBeUndefined();
  const own = { tokens: { aws: TOKENS.aws } };
  expect(await iamOf(await create({ templateID: taken.snapshotID, iam: own }))).toEqual(own);
});

test("both versions of create take tokens, and no tokens are as no option", async () => {
  expect(await iamOf(await create({ iam: { tokens: TOKENS } }, "/sandboxes"))).toEqual({ tokens: TOKENS });
  for (const iam of [undefined, null, {}, { tokens: {} }, { tokens: null }]) {
    expect(await iamOf(await create({ iam })), JSON.stringify(iam)).toBeUndefined();
  }
});

test("everyone reads the issuer's documents, and operators alone rotate its keys", async () => {
  const open = { key: null };
  const configuration = await cluster.ask("GET", "/.well-known/openid-configuration", open);
  expect(configuration.body).toMatchObject({ issuer: cluster.url, jwks_uri: `${cluster.url}/.well-known/jwks.json` });
  const published = async () =>
    ((await cluster.ask("GET", "/.well-known/jwks.json", open)).body as { keys: { kid: string }[] }).keys;
  const [first] = await published();
  for (const [method, path] of [
    ["GET", "/admin/identity/keys"],
    ["POST", "/admin/identity/rotate"],
  ] as const) {
    expect((await cluster.ask(method, path)).status, path).toBe(401);
  }
  const operator = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  const rotated = await cluster.ask("POST", "/admin/identity/rotate", operator);
  expect(rotated.body).toMatchObject({ keys: [{ kid: first?.kid, state: "signing" }, { state: "next" }] });
  expect(await published()).toHaveLength(2);
  // The keys are the same after a restart.
  await cluster.restart();
  expect((await cluster.ask("GET", "/admin/identity/keys", operator)).body).toEqual(rotated.body);
});
