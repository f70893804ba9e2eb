/** Settings of the operator that a test adds to the running platform, and that it takes back when the test is over. */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import { checkout, type Platform } from "./platform.ts";
import { type Program, run, service, untilReady } from "./programs.ts";

/** Runs a step of `scripts/host/services` for this platform. */
export function hostStep(platform: Platform, step: string, ...args: string[]): Promise<string> {
  return run(`${checkout}scripts/host/services/${step}`, args, { SVC_INSTANCE: platform.instance });
}

/** Adds a line to the operator's own settings; no program has it yet. The result takes it back, on the machine too. */
export function addOwnSetting(platform: Platform, line: string): () => Promise<void> {
  const own = `${checkout}.svc${platform.instance === "" ? "" : `-${platform.instance}`}/config.env`;
  const kept = existsSync(own) ? readFileSync(own, "utf8") : undefined;
  writeFileSync(own, `${kept ?? ""}\n${line}\n`);
  return async () => {
    writeFileSync(own, kept ?? "");
    await hostStep(platform, "settings", "replace");
    if (kept === undefined) rmSync(own);
  };
}

/** Adds a line to the operator's own settings until the test ends. */
export function addSetting(platform: Platform, line: string): void {
  onTestFinished(addOwnSetting(platform, line));
}

/** Restarts a program with this line among its settings, and without it when the test is over. */
export async function restartWith(platform: Platform, program: Program, line: string): Promise<void> {
  const restart = async () => {
    await service(platform, "restart", program);
    await untilReady(platform);
  };
  // What is registered first runs last: the setting is gone by then.
  onTestFinished(restart);
  addSetting(platform, line);
  await hostStep(platform, "settings", "replace");
  await restart();
}
