/** Templates of images from elsewhere, requested with the SDK: from a registry with a password, and by upload. */

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { BuildError, Template } from "e2b";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { debianRegistry } from "../../support/images/debian-registry.ts";
import { archiveOf, layoutOf, savedImage } from "../../support/images/saved-image.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { run } from "../../support/platform/programs.ts";
import { buildTemplate, fresh, removeAfterwards, SIZE } from "../../support/platform/templates.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const id = randomUUID().slice(0, 8);
const image = `svc/test-registry:${id}`;

beforeAll(async () => {
  const container = `svc-test-registry-${id}`;
  const text = "echo from-elsewhere > /note";
  await run("docker", ["run", "--name", container, "--network=none", "svc/test-busybox", "/bin/sh", "-c", text]);
  await run("docker", ["commit", "--change", "LABEL svc.image=made", container, image]);
  await run("docker", ["rm", container]);
});
afterAll(() => run("docker", ["rmi", "-f", image]));

async function note(template: string): Promise<string> {
  const sandbox = await ownSandbox({ template });
  return (await sandbox.commands.run("cat /note")).stdout;
}

test("an image behind a password is built from with it, refused without, and the password is nowhere", async () => {
  const registry = await debianRegistry();
  onTestFinished(() => registry.close());
  const { username, password } = registry;
  const from = await registry.push(image, "team/image:1");
  const name = fresh("registry");
  const wrong = await refusal(
    buildTemplate(platform, name, Template().fromImage(from, { username, password: `not-${password}` })),
  );
  expect(wrong).toBeInstanceOf(BuildError);
  expect(wrong.message).toContain(`the image ${from} cannot be pulled`);
  const { lines } = await buildTemplate(platform, name, Template().fromImage(from, { username, password }));
  expect(await note(name)).toBe("from-elsewhere\n");
  expect(`${wrong.message}${lines.join()}`).not.toContain(password);
  for (const file of await written()) expect((await readFile(file)).includes(password), file).toBe(false);
});

/** Lists databases and logs of both programs. */
async function written(): Promise<string[]> {
  const { state } = platform.paths;
  const logs = state.replace("/var/lib/", "/var/log/");
  // Not below: there are the disks of sandboxes, which come and go.
  const files = async (directory: string, kind: RegExp) =>
    (await readdir(directory)).filter((name) => kind.test(name)).map((name) => join(directory, name));
  const databases = [
    ...(await files(join(state, "orchestrator"), /\.db(-wal)?$/)),
    ...(await files(join(state, "agent"), /\.db(-wal)?$/)),
  ];
  const texts = await files(logs, /(agent|orchestrator)\.log$/);
  expect(databases.length).toBeGreaterThan(1);
  // Under systemd the journal has the logs.
  return [...databases, ...texts];
}

test("an image in no registry is uploaded for a template, and that one is built from it", async () => {
  const name = fresh("uploaded");
  const body = { name, ...SIZE };
  const { templateID } = (await api(platform, "POST", "/v3/templates", { body })).json as { templateID: string };
  removeAfterwards(platform, templateID);
  const archive = await archiveOf(layoutOf(await savedImage(image)));
  const hash = createHash("sha256").update(archive).digest("hex");
  const upload = await api(platform, "GET", `/templates/${templateID}/files/${hash}`);
  const { url, headers = {} } = upload.json as { url: string; headers?: Record<string, string> };
  const put = await fetch(url, { method: "PUT", headers, body: new Uint8Array(archive) });
  expect(put.ok, `${put.status} ${await put.text()}`).toBe(true);
  await buildTemplate(platform, name, Template().fromImage(`oci-archive:${hash}`));
  expect(await note(name)).toBe("from-elsewhere\n");
});
