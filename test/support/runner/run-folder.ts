/**
 * One folder for what test files of a run share and keep until its end, such as a compiled program. The runner ends its
 * workers without asking them, so what a worker removes at its own exit stays; the run itself removes this folder.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAME = "SVC_TEST_RUN_FOLDER";
const shared = globalThis as { testRunFolderUsers?: number };

/** Runs once for each project of a run; the projects share the folder. */
export function setup(): void {
  shared.testRunFolderUsers = (shared.testRunFolderUsers ?? 0) + 1;
  process.env[NAME] ??= mkdtempSync(join(tmpdir(), "svc-test-run-"));
}

export function teardown(): void {
  shared.testRunFolderUsers = (shared.testRunFolderUsers ?? 1) - 1;
  const folder = process.env[NAME];
  if (shared.testRunFolderUsers > 0 || folder === undefined) return;
  delete process.env[NAME];
  rmSync(folder, { recursive: true, force: true });
}

export function runFolder(): string {
  const folder = process.env[NAME];
  if (folder !== undefined) return folder;
  // A program outside a test run, such as a bench, has a folder of its own and ends by itself.
  const own = mkdtempSync(join(tmpdir(), "svc-test-run-"));
  process.once("exit", () => rmSync(own, { recursive: true, force: true }));
  process.env[NAME] = own;
  return own;
}
