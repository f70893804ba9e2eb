/** The operator's own settings of the platform: a test adds to them, and they are as before when it ends. */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { checkout, type Platform } from "./platform.ts";
import { run } from "./programs.ts";

/** Runs one of the steps of `scripts/up`. */
export function hostStep({ instance }: Platform, step: string, ...args: string[]): Promise<string> {
  return run(`${checkout}scripts/host/services/${step}`, args, { SVC_INSTANCE: instance });
}

/** Adds a line to the checkout's file. The result brings the file and the machine's settings back; programs keep what they run with. */
export function addOwnSetting(platform: Platform, line: string): () => Promise<void> {
  const file = `${checkout}.svc${platform.instance === "" ? "" : `-${platform.instance}`}/config.env`;
  const kept = existsSync(file) ? readFileSync(file, "utf8") : undefined;
  writeFileSync(file, `${kept ?? ""}\n${line}\n`);
  return async () => {
    writeFileSync(file, kept ?? "");
    await hostStep(platform, "settings", "replace");
    if (kept === undefined) rmSync(file);
  };
}
