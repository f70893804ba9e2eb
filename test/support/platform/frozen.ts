/** The frozen containers of paused sandboxes, as the host sees them. */

import { readFile, writeFile } from "node:fs/promises";
import { until } from "../runner/until.ts";
import { containersOf } from "./host-objects.ts";
import type { Platform } from "./platform.ts";
import { run } from "./programs.ts";

/** Kills the frozen container of a paused sandbox, as memory pressure would; only the stored state is left. */
export async function dropFrozen(platform: Platform, sandboxId: string): Promise<void> {
  const container = (await containersOf(platform)).find(({ name }) => name === `svc-${sandboxId}`);
  if (container?.state !== "running") return;
  const group = `/sys/fs/cgroup/freezer/docker/${container.id}`;
  // The kill covers all processes: one that outlived the first for a moment would write to the disk that the memory belongs
  // to.
  const inside = (await readFile(`${group}/cgroup.procs`, "utf8").catch(() => "")).split("\n").filter(Boolean);
  for (const pid of inside) process.kill(Number(pid), "SIGKILL");
  await run("docker", ["kill", container.id]);
  // A frozen process under cgroup v1 takes the signal only when it thaws.
  await writeFile(`${group}/freezer.state`, "THAWED").catch(() => undefined);
  await until(
    async () => (await containersOf(platform)).every(({ id, state }) => id !== container.id || state !== "running"),
    {
      what: "the end of a frozen container",
      timeoutMs: 10_000,
    },
  );
}
