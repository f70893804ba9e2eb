/** A project of its own through the published package: its limits, what it may do while it is disabled, and its deletion. */

import { RateLimitError, Sandbox, SandboxError } from "e2b";
import { expect, test } from "vitest";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";

const platform = openPlatform();

test("an operator limits a project, disables it and deletes it with its sandboxes", async () => {
  const admin = async (method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: object) =>
    (await api(platform, method, `/admin${path}`, { ...asAdmin(platform), ...(body === undefined ? {} : { body }) }))
      .json;
  const name = `limited ${Date.now()}`;
  const { projectID } = (await admin("POST", "/projects", { name, limits: { sandboxes: 1 } })) as { projectID: string };
  const { key: apiKey } = (await admin("POST", `/teams/${projectID}/api-keys`, { name: "k" })) as { key: string };
  const sandbox = await Sandbox.create({ apiKey });
  await expect(Sandbox.create({ apiKey, retries: 0 })).rejects.toThrow(RateLimitError);
  expect(await admin("GET", `/projects/${projectID}/limits`)).toMatchObject({
    limits: { sandboxes: { limit: 1, used: 1, own: true } },
  });

  await admin("POST", `/projects/${projectID}/disable`, { reason: "test-reason" });
  const refused = expect.objectContaining({
    message: expect.stringContaining("team is blocked: test-reason") as string,
  });
  await expect(Sandbox.create({ apiKey })).rejects.toEqual(refused);
  await expect(sandbox.pause()).rejects.toThrow(SandboxError);
  expect(await sandbox.isRunning()).toBe(true);
  expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
  expect((await sandbox.getInfo()).state).toBe("running");

  await admin("DELETE", `/projects/${projectID}`);
  const deletion = () => admin("GET", `/projects/${projectID}/deletion`);
  await expect.poll(deletion, { timeout: 90_000 }).toMatchObject({ status: "deleted", remaining: { sandboxes: 0 } });
  expect(await sandbox.isRunning()).toBe(false);
});
