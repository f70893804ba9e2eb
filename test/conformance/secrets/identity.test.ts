/** Workload identity through the published SDK: tokens are named at create, and the issuer's documents are public. */

import { Sandbox, Secret } from "e2b";
import { expect, test } from "vitest";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

test("a sandbox with identity tokens shows them, and none is inside it", async () => {
  const token = Secret.iamToken({ audience: "sts.amazonaws.com", tokenType: "JWT-SVID" });
  const sandbox = await ownSandbox({ iam: { tokens: { aws: token } } });
  const read = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}`);
  expect(read.json).toMatchObject({ iam: { tokens: { aws: token } } });
  const { stdout } = await sandbox.commands.run("env; ls -A /var/run/secrets /run/secrets 2>/dev/null || true");
  expect(stdout).not.toMatch(/eyJ|amazonaws/);
});

test("an unknown type of token is refused", async () => {
  const iam = { tokens: { aws: { audience: "sts.amazonaws.com", tokenType: "JWT" } } };
  expect((await refusal(Sandbox.create({ iam }))).message).toContain("tokenType");
});

test("the discovery document leads to a key that signs", async () => {
  const configuration = (await api(platform, "GET", "/.well-known/openid-configuration", { key: null })).json;
  const { keys } = (await api(platform, "GET", "/.well-known/jwks.json", { key: null })).json as {
    keys: { kid: string }[];
  };
  expect(configuration).toMatchObject({ id_token_signing_alg_values_supported: ["ES256"] });
  const shown = (await api(platform, "GET", "/admin/identity/keys", asAdmin(platform))).json as {
    keys: { kid: string; state: string }[];
  };
  expect(keys.map(({ kid }) => kid)).toContain(shown.keys.find(({ state }) => state === "signing")?.kid);
});
