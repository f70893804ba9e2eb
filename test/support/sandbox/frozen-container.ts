/** Ends a frozen container without a request to the platform. */

import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Kills a frozen container, as memory pressure would: what is stored of its sandbox is all that is left. */
export async function killFrozen(containerId: string): Promise<void> {
  const group = `/sys/fs/cgroup/freezer/docker/${containerId}`;
  // The kill covers all processes: one that outlived the first for a moment would write to the disk that the memory belongs
  // to.
  const inside = (await readFile(`${group}/cgroup.procs`, "utf8").catch(() => "")).split("\n").filter(Boolean);
  for (const pid of inside) killIfThere(Number(pid));
  // It may end by itself meanwhile, as after a pause without memory.
  await run("docker", ["kill", containerId]).catch((error: unknown) => {
    if (!String(error).includes("is not running") && !String(error).includes("No such container")) throw error;
  });
  // A frozen process under cgroup v1 takes the signal only when it thaws.
  await writeFile(`${group}/freezer.state`, "THAWED").catch(() => undefined);
}

/** Kills a process with SIGKILL, unless it has ended meanwhile. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
