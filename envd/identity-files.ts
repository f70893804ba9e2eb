/** The sandbox's identity as files, for programs that are not started by envd: /run/e2b/.E2B_* and /run/svc/*. */

import { mkdir, writeFile } from "node:fs/promises";
import { posix } from "node:path";
import type { Settings } from "./session.ts";

/** @param root `/` outside of tests */
export async function writeIdentity(root: string, { sandboxId, templateId }: Settings): Promise<void> {
  const values = { SANDBOX: "true", SANDBOX_ID: sandboxId, TEMPLATE_ID: templateId };
  for (const [directory, prefix] of [
    ["run/e2b", ".E2B_"],
    ["run/svc", ".SVC_"],
  ] as const) {
    await mkdir(posix.join(root, directory), { recursive: true, mode: 0o755 });
    for (const [name, value] of Object.entries(values))
      if (value !== undefined) await writeFile(posix.join(root, directory, prefix + name), value, { mode: 0o644 });
  }
}
