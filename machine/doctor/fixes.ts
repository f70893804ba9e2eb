/** The acts of `--fix`. Each is safe to repeat, follows no link, and changes only what its check has named. */

import { constants } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { lastWords } from "../base/commands.ts";
import type { Machine } from "../base/this-machine.ts";
import type { Fix } from "../checks/check.ts";

/** Resolves to why it could not be mended. */
export async function applyFix(fix: Fix, { run }: Pick<Machine, "run">): Promise<string | undefined> {
  try {
    switch (fix.does) {
      case "mode":
        await setAccess(fix);
        return undefined;
      case "forwarding":
        await writeFile("/proc/sys/net/ipv4/ip_forward", "1");
        return undefined;
      case "module": {
        const said = await run("modprobe", [fix.name]);
        return said.status === 0 ? undefined : lastWords(said);
      }
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function setAccess({ path, mode, uid, gid }: Extract<Fix, { does: "mode" }>): Promise<void> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    // First the mode: nobody reads it in between.
    await file.chmod(mode);
    await file.chown(uid, gid);
  } finally {
    await file.close();
  }
}
