/** A mistake in the operator's settings is reported before a running program is stopped. */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { addOwnSetting, hostStep } from "../support/platform/own-settings.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { pidOf } from "../support/platform/programs.ts";

const platform = openPlatform();

function inForce(): string[] {
  const files = ["orchestrator.env", "orchestrator.own.env", "agent.env", "agent.own.env", "config.env"];
  return files.map((file) => readFileSync(`${platform.paths.etc}/${file}`, "utf8"));
}

const host = (step: string, ...args: string[]) => hostStep(platform, step, ...args);

/** Adds a line to the operator's own settings until the test ends. */
function addSetting(line: string): void {
  onTestFinished(addOwnSetting(platform, line));
}

test.each([
  ["SVC_POOL_SIZE", "SVC_POOL_SIZE=abc"],
  ["SVC_API_PORT", "SVC_API_PORT=99999"],
  ["SVC_SUBNET", "SVC_SUBNET=10.0.0.0/40"],
  ["SVC_BOOT_CONCURRENCY", 'SVC_BOOT_CONCURRENCY="0"'],
  ["SVC_POOL_SZE", "SVC_POOL_SZE=3"],
])("a wrong %s is refused by name, and the settings in force do not change", async (name, line) => {
  const before = inForce();
  addSetting(line);
  await expect(host("settings")).rejects.toThrow(name);
  expect(inForce()).toEqual(before);
});

test("a program is not stopped when the port of its new settings is taken by another program", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await expect.poll(() => other.listening).toBe(true);
  const { port } = other.address() as AddressInfo;
  const before = await pidOf(platform, "orchestrator");
  addSetting(`SVC_API_PORT=${port}`);
  await expect(host("settings")).rejects.toThrow("would change settings of the running platform: SVC_API_PORT");
  await host("settings", "replace");
  await expect(host("start", "orchestrator")).rejects.toThrow(`port ${port} is in use`);
  expect(await pidOf(platform, "orchestrator")).toBe(before);
});
