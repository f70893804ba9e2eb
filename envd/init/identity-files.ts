/** The sandbox's identity as files, for programs that envd does not start: /run/e2b/.E2B_* and /run/svc/.SVC_*; its execution. */

import { closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, writeSync } from "node:fs";
import { posix } from "node:path";
import type { Settings } from "./session.ts";

/** Another text after each start, resume and copy: the sign for programs that their memory may be a copy. */
const EXECUTION_FILE = "run/svc/execution-id";

/**
 * Writes synchronously, not through libuv's threads: the files are seven and tiny, and the sandbox's start waits for them.
 * Overwriting the files of a warmed envd takes 0.2 ms; making them takes 2 ms of the disk's time.
 * @param root `/` outside of tests
 */
export function writeIdentity(root: string, { sandboxId, templateId, executionId }: Settings): void {
  const values = { SANDBOX: "true", SANDBOX_ID: sandboxId, TEMPLATE_ID: templateId };
  for (const [directory, prefix] of [
    ["run/e2b", ".E2B_"],
    ["run/svc", ".SVC_"],
  ] as const) {
    mkdirSync(posix.join(root, directory), { recursive: true, mode: 0o755 });
    for (const [name, value] of Object.entries(values))
      if (value !== undefined) writeOver(posix.join(root, directory, prefix + name), value);
  }
  // Last: a program that waits for it finds the others written.
  if (executionId !== undefined) writeOver(posix.join(root, EXECUTION_FILE), `${executionId}\n`);
}

// Truncates afterwards, and only a longer file: closing a file that was emptied first makes the kernel flush it.
function writeOver(path: string, text: string): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o644);
  try {
    const size = writeSync(file, text, 0);
    if (fstatSync(file).size > size) ftruncateSync(file, size);
  } finally {
    closeSync(file);
  }
}
