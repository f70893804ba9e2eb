/**
 * `globalSetup` of the tests that start agents of their own. It builds the agent and the egress process once, as they are
 * installed, because starting them from their sources takes five times as long. SVC_TEST_BUILT names the directory.
 */

import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), "svc-programs-"));
  // The egress process runs as a user other than root.
  chmodSync(directory, 0o755);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const build = ["--import", "tsx", "scripts/build.ts", "--to", directory, "agent", "egress"];
    execFileSync(process.execPath, build, { cwd: root, stdio: "inherit" });
  } catch (error) {
    remove();
    throw error;
  }
  process.env["SVC_TEST_BUILT"] = directory;
  return remove;
}
