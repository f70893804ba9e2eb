/** A slip in a person's own settings is told before anything that runs is touched. */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { checkout, openPlatform } from "../support/platform.ts";
import { run } from "../support/programs.ts";

const platform = openPlatform();
const own = `${checkout}.svc${platform.instance === "" ? "" : `-${platform.instance}`}/config.env`;

function inForce(): string[] {
  const files = ["orchestrator.env", "orchestrator.own.env", "agent.env", "agent.own.env", "config.env"];
  return files.map((file) => readFileSync(`${platform.paths.etc}/${file}`, "utf8"));
}

test.each([
  ["SVC_POOL_SIZE", "SVC_POOL_SIZE=abc"],
  ["SVC_API_PORT", "SVC_API_PORT=99999"],
  ["SVC_SUBNET", "SVC_SUBNET=10.0.0.0/40"],
  ["SVC_BOOT_CONCURRENCY", 'SVC_BOOT_CONCURRENCY="0"'],
  ["SVC_POOL_SZE", "SVC_POOL_SZE=3"],
])("a wrong %s is refused by name, and what is in force stays", async (name, line) => {
  const kept = existsSync(own) ? readFileSync(own, "utf8") : undefined;
  onTestFinished(() => {
    if (kept === undefined) rmSync(own);
    else writeFileSync(own, kept);
  });
  const before = inForce();
  writeFileSync(own, `${kept ?? ""}\n${line}\n`);
  await expect(run(`${checkout}scripts/host/settings`, [], { SVC_INSTANCE: platform.instance })).rejects.toThrow(name);
  expect(inForce()).toEqual(before);
});
