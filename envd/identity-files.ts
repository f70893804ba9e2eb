/** The sandbox's identity as files, for programs that are not started by envd: /run/e2b/.E2B_* and /run/svc/*. */

import { mkdirSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import type { Settings } from "./session.ts";

/**
 * At once, not through libuv's threads: six tiny files in memory, and the sandbox's start waits for them.
 * @param root `/` outside of tests
 */
export function writeIdentity(root: string, { sandboxId, templateId }: Settings): void {
  const values = { SANDBOX: "true", SANDBOX_ID: sandboxId, TEMPLATE_ID: templateId };
  for (const [directory, prefix] of [
    ["run/e2b", ".E2B_"],
    ["run/svc", ".SVC_"],
  ] as const) {
    mkdirSync(posix.join(root, directory), { recursive: true, mode: 0o755 });
    for (const [name, value] of Object.entries(values))
      if (value !== undefined) writeFileSync(posix.join(root, directory, prefix + name), value, { mode: 0o644 });
  }
}
