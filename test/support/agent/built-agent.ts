/**
 * `globalSetup` of the tests that start agents of their own. It builds the agent and the egress process once, as they are
 * installed, because starting them from their sources takes five times as long. SVC_TEST_BUILT names the directory. A test's own
 * main file of the agent is built beside them when the first test asks for it.
 */

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "../../..");

export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), "svc-programs-"));
  // The egress process runs as a user other than root.
  chmodSync(directory, 0o755);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    build(directory, "agent", "egress");
  } catch (error) {
    remove();
    throw error;
  }
  process.env["SVC_TEST_BUILT"] = directory;
  return remove;
}

/** Returns the path of the built agent, or of an agent that a test makes of its parts. */
export function builtAgent(main?: URL): string {
  const directory = process.env["SVC_TEST_BUILT"];
  if (directory === undefined)
    throw new Error("SVC_TEST_BUILT is not set: this project of test/vitest.config.ts builds no agent");
  if (main === undefined) return join(directory, "agent.js");
  const source = relative(root, main.pathname);
  const file = join(directory, `${source.replace(/\.ts$/, "").replaceAll("/", "-")}.js`);
  if (!existsSync(file)) build(directory, "--main", source);
  return file;
}

function build(directory: string, ...what: readonly string[]): void {
  const command = ["--import", "tsx", "scripts/build.ts", "--to", directory, ...what];
  execFileSync(process.execPath, command, { cwd: root, stdio: "inherit" });
}
