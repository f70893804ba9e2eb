/**
 * CRIU's note of what the kernel can do. Without the note every call of CRIU tries the kernel out again, for 20 to 60 ms. CRIU
 * writes the note on a tmpfs only, because the note must not outlive the kernel, and a confined CRIU writes none
 * (scripts/host/criu/confine). So the agent makes the note when the agent starts, before the first dump, and when an operator
 * has replaced CRIU.
 */

import { rename, rm, writeFile } from "node:fs/promises";
import type { RunCommand } from "../../host/command.ts";
import { CRIU_PATH } from "./criu.ts";

/** Where CRIU looks for it. */
const NOTE = "/run/criu.kdat";
const LIMIT_MS = 15_000;
/** In a mount namespace of its own. The check may find something missing: the note is then true all the same. */
const MAKE = "mount -t tmpfs -o mode=0700,size=1m none /run && { criu check >&2 || true; } && base64 /run/criu.kdat";

/**
 * Replaces the note in one step: a CRIU of another agent on this machine may be about to read it. Rejects when CRIU makes no note;
 * there is none then, which makes its calls slower and no different.
 */
export async function noteKernelFeatures(run: RunCommand): Promise<void> {
  const fresh = `${NOTE}.${process.pid}`;
  try {
    const made = await run("unshare", ["--mount", "--propagation", "private", "--", "sh", "-c", MAKE], {
      timeoutMs: LIMIT_MS,
      path: CRIU_PATH,
    });
    await writeFile(fresh, Buffer.from(made, "base64"), { mode: 0o600 });
    await rename(fresh, NOTE);
  } catch (error) {
    // It may be an earlier kernel's, where /run outlives a restart of the machine.
    await rm(NOTE, { force: true });
    throw error;
  } finally {
    await rm(fresh, { force: true });
  }
}
