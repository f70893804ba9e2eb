/**
 * Templates and other projects: a private template does not exist for them, and a public one they may use and nothing more.
 */

import { NotFoundError, Sandbox, Template } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";
import { buildTemplate, fresh, SIZE } from "../../support/platform/templates.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
let other = "";

beforeAll(async () => {
  const made = await api(platform, "POST", "/admin/projects", { ...asAdmin(platform), body: { name: fresh("other") } });
  const { teamID } = made.json as { teamID: string };
  const key = await api(platform, "POST", `/admin/teams/${teamID}/api-keys`, {
    ...asAdmin(platform),
    body: { name: "other" },
  });
  other = (key.json as { key: string }).key;
});

interface Shown {
  readonly templateID: string;
  readonly names: readonly string[];
  readonly public: boolean;
}

async function listed(templateId: string): Promise<boolean[]> {
  const lists = await Promise.all(
    ["/templates", "/v2/templates?limit=100"].map((path) => api(platform, "GET", path, { key: other })),
  );
  return lists.map(({ json }) => (json as Shown[]).some(({ templateID }) => templateID === templateId));
}

test("another project can use a template only while it is public, and can never change it", async () => {
  const name = fresh("shared");
  const { templateId, buildId } = await buildTemplate(
    platform,
    name,
    Template().fromTemplate("base").runCmd("echo mine > ~/whose"),
  );
  const found = await api(platform, "GET", "/templates");
  const [qualified = ""] = (found.json as Shown[]).find(({ templateID }) => templateID === templateId)?.names ?? [];
  expect(qualified).toMatch(new RegExp(`/${name}$`));
  const as = { apiKey: other };
  const status = async (method: string, path: string, body?: object) =>
    (await api(platform, method, path, { key: other, ...(body === undefined ? {} : { body }) })).status;
  /** Tries everything that only the owner may do, whether or not others may use the template. */
  const refused = async () => ({
    remove: await status("DELETE", `/templates/${templateId}`),
    change: await status("PATCH", `/v2/templates/${templateId}`, { public: true }),
    name: await status("POST", "/v3/templates", { name: qualified }),
    build: await status("POST", `/v2/templates/${templateId}/builds/${buildId}`, { fromTemplate: "base" }),
    upload: await status("GET", `/templates/${templateId}/files/${"a".repeat(64)}`),
    follow: await status("GET", `/templates/${templateId}/builds/${buildId}/status`),
    tag: await status("POST", "/templates/tags", { target: templateId, tags: ["stolen"] }),
    untag: await status("DELETE", "/templates/tags", { name: templateId, tags: ["default"] }),
  });
  const everything = (change: 403 | 404) => ({
    remove: 404,
    change,
    name: 400,
    build: 404,
    upload: 404,
    follow: 404,
    tag: 404,
    untag: 404,
  });
  const useless = async () => {
    for (const reference of [qualified, templateId]) {
      expect((await refusal(Sandbox.create(reference, as))).message).toMatch(/^404/);
      expect((await api(platform, "GET", `/templates/${encodeURIComponent(reference)}`, { key: other })).status).toBe(
        404,
      );
    }
    const below = Template().fromTemplate(qualified).runCmd("true");
    expect((await refusal(Template.build(below, fresh("below"), { ...SIZE, ...as }))).message).toContain(qualified);
    expect(await listed(templateId)).toEqual([false, false]);
    // Other projects must not learn that the template exists.
    expect(await refused()).toEqual(everything(404));
  };

  // For other projects the bare name is free, but the full name is known to be taken.
  expect(await Template.exists(name, as)).toBe(false);
  expect(await Template.exists(qualified, as)).toBe(true);
  expect(
    (await api(platform, "GET", `/templates/aliases/${encodeURIComponent(qualified)}`, { key: other })).status,
  ).toBe(403);
  expect((await refusal(Template.getTags(templateId, as))).message).toMatch(/^404/);
  await useless();

  expect(await api(platform, "PATCH", `/v2/templates/${templateId}`, { body: { public: true } })).toMatchObject({
    status: 200,
    json: { names: [qualified] },
  });
  for (const reference of [qualified, templateId]) {
    const sandbox = await Sandbox.create(reference, { ...as, timeoutMs: 300_000 });
    try {
      expect((await sandbox.commands.run("cat ~/whose")).stdout).toBe("mine\n");
      // The sandbox belongs to the other project all the same.
      expect(await refusal(Sandbox.getInfo(sandbox.sandboxId))).toBeInstanceOf(NotFoundError);
    } finally {
      await sandbox.kill();
    }
  }
  expect(await Template.exists(qualified, as)).toBe(true);
  expect((await Template.getTags(templateId, as)).map(({ tag }) => tag)).toEqual(["default"]);
  expect(await refused()).toEqual(everything(403));

  await api(platform, "PATCH", `/v2/templates/${templateId}`, { body: { public: false } });
  await useless();
  // None of these attempts has harmed the owner.
  const sandbox = await ownSandbox({ template: name });
  expect((await sandbox.commands.run("cat ~/whose")).stdout).toBe("mine\n");
});

test("the same name in two projects is two templates", async () => {
  const name = fresh("twice");
  const mine = await buildTemplate(platform, name, Template().fromTemplate("base").runCmd("echo mine > ~/whose"));
  const theirs = await Template.build(Template().fromTemplate("base").runCmd("echo theirs > ~/whose"), name, {
    ...SIZE,
    apiKey: other,
  });
  try {
    expect(theirs.templateId).not.toBe(mine.templateId);
    const sandbox = await ownSandbox({ template: name, apiKey: other });
    expect((await sandbox.commands.run("cat ~/whose")).stdout).toBe("theirs\n");
    const own = await ownSandbox({ template: name });
    expect((await own.commands.run("cat ~/whose")).stdout).toBe("mine\n");
    await Promise.all([sandbox.kill(), own.kill()]);
  } finally {
    expect((await api(platform, "DELETE", `/templates/${theirs.templateId}`, { key: other })).status).toBe(204);
  }
  expect(await Template.exists(name)).toBe(true);
});
