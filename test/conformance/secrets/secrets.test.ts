/** Secrets through the published SDK, and rules that name them. Their way into requests has tests of its own. */

import { Sandbox, Secret, SecretNotFoundError } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const VALUE = "conformance-value-of-a-secret";

/** A name of its own, whose secret is destroyed after the test. */
function newName(): string {
  const name = `Conformance-${crypto.randomUUID()}`;
  onTestFinished(async () => {
    await Secret.destroy(name);
  });
  return name;
}

const rules = (secret: string) => ({
  "api.example.com": [{ transform: { headers: { Authorization: `Bearer ${Secret.fill(secret)}` } } }],
});

test("the SDK creates, reads, changes and destroys a secret, and no answer has its value", async () => {
  const name = newName();
  const created = await Secret.create(name, VALUE, { metadata: { team: "blue" } });
  expect(created).toMatchObject({ name: name.toLowerCase(), version: 1, metadata: { team: "blue" } });
  expect((await refusal(Secret.create(name, VALUE))).message).toContain("409");
  expect(await Secret.update(name, "another value")).toMatchObject({ secretId: created.secretId, version: 2 });
  const read = await api(platform, "GET", `/secrets/${created.secretId}`);
  expect(read.headers.get("cache-control")).toBe("no-store");
  expect(read.json).toMatchObject({ currentVersion: 2, metadata: { team: "blue" }, useCount: 0, lastUsedAt: null });
  expect(read.text).not.toContain("value");
  const pages = Secret.list({ limit: 100 });
  const seen: string[] = [];
  while (pages.hasNext) seen.push(...(await pages.nextItems()).map(({ secretId }) => secretId));
  expect(seen).toContain(created.secretId);
  expect([await Secret.destroy(created.secretId), await Secret.exists(name)]).toEqual([true, false]);
  expect(await refusal(Secret.getInfo(name))).toBeInstanceOf(SecretNotFoundError);
});

test("rules may name a secret of the project, and no other, at create and at an update", async () => {
  const name = newName();
  await Secret.create(name, VALUE);
  const unknown = `unknown-${crypto.randomUUID()}`;
  const message = `the project has no secret '${unknown}'`;
  expect((await refusal(Sandbox.create({ network: { rules: rules(unknown) } }))).message).toContain(message);
  const sandbox = await ownSandbox({ network: { rules: rules(name) } });
  expect((await refusal(sandbox.updateNetwork({ rules: rules(unknown) }))).message).toContain(message);
  await sandbox.updateNetwork({ rules: rules(name.toUpperCase()) });
});

test("the operator's command that encrypts all data keys anew says that it is done", async () => {
  const name = newName();
  await Secret.create(name, VALUE);
  const reply = await api(platform, "POST", "/admin/secrets/rewrap", asAdmin(platform));
  expect(reply.json).toMatchObject({ failed: 0, stillNeeded: [], done: true });
});
