/** The frozen containers of paused sandboxes, as the host sees them. */

import { readFile } from "node:fs/promises";
import { until } from "../runner/until.ts";
import { killFrozen } from "../sandbox/frozen-container.ts";
import { containersOf } from "./host-objects.ts";
import type { Platform } from "./platform.ts";

/** Kills the frozen container of a paused sandbox, as memory pressure would; only the stored state is left. */
export async function dropFrozen(platform: Platform, sandboxId: string): Promise<void> {
  const container = (await containersOf(platform)).find(({ name }) => name === `svc-${sandboxId}`);
  if (container?.state !== "running") return;
  await killFrozen(container.id);
  await until(
    async () => (await containersOf(platform)).every(({ id, state }) => id !== container.id || state !== "running"),
    {
      what: "the end of a frozen container",
      timeoutMs: 60_000,
    },
  );
}

/** What the kernel says of a container: "FROZEN" or "THAWED". */
export async function freezerState(containerId: string): Promise<string> {
  return (await readFile(`/sys/fs/cgroup/freezer/docker/${containerId}/freezer.state`, "utf8")).trim();
}
