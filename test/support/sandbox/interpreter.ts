/** Sandboxes of the template code-interpreter-v1, made with the published package, and what tests ask of them. */

import { type Context, type RunCodeLanguage, type RunCodeOpts, Sandbox } from "@e2b/code-interpreter";
import type { SandboxOpts } from "e2b";
import { expect } from "vitest";
import { killedAfterwards, shared } from "./sdk.ts";

type Options = SandboxOpts;

/** Makes one sandbox for all tests of a file or block; those tests must not depend on each other. */
export function sharedInterpreter(options: Options = {}): () => Sandbox {
  return shared(() => Sandbox.create({ timeoutMs: 1_800_000, ...options }));
}

/** Makes a sandbox for one test. */
export async function ownInterpreter(options: Options = {}): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000, ...options });
  return killedAfterwards(sandbox);
}

/** Makes a sandbox for one test from another template or a snapshot. */
export async function interpreterFrom(template: string): Promise<Sandbox> {
  return killedAfterwards(await Sandbox.create(template, { timeoutMs: 600_000 }));
}

type RunOptions = RunCodeOpts & { readonly language?: RunCodeLanguage; readonly context?: Context };

/** The text of the main result of code that must not fail. */
export async function valueOf(sandbox: Sandbox, code: string, options: RunOptions = {}): Promise<string | undefined> {
  const execution = await sandbox.runCode(code, options);
  expect(execution.error, execution.error?.traceback).toBeUndefined();
  return execution.text;
}

/** All that code which must not fail wrote to stdout. */
export async function printed(sandbox: Sandbox, code: string, options: RunOptions = {}): Promise<string> {
  const execution = await sandbox.runCode(code, options);
  expect(execution.error, execution.error?.traceback).toBeUndefined();
  return execution.logs.stdout.join("");
}
