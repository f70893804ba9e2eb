/**
 * Finishes resumes with memory that an earlier agent process left unfinished. Docker completes a restore without the
 * agent, and the restored processes run. They are frozen here and become the memory of the paused sandbox, because the
 * stored memory no longer fits the disk that they may have changed. The next resume thaws them.
 */

import { within } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Cgroup } from "../../containers/cgroup/cgroup.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { KnownContainer } from "../../store/containers.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import type { Memory } from "../take/host-memory.ts";

/** Enough for the largest memory, which is checked as fast as the disk reads. */
const VERIFY_LIMIT_MS = 60_000;

export interface InterruptedResumesDeps {
  readonly docker: Docker;
  readonly memory: Memory;
  readonly stores: Stores;
  readonly log: Log;
}

/** Runs before the recovery plan is made, which keeps these containers. */
export async function interruptedResumes(deps: InterruptedResumesDeps): Promise<void> {
  const { stores, log } = deps;
  const known = new Map(stores.containers.all().map((container) => [container.id, container]));
  const begun = stores.snapshots.all().filter(({ state, resuming }) => state === "stored" && resuming);
  await Promise.all(
    begun.map(async (snapshot) => {
      const container = known.get(snapshot.disk.containerId);
      const kept = container !== undefined && (await keep(snapshot, container, deps));
      log.info({ snapshotId: snapshot.id, sandboxId: snapshot.sandboxId, kept }, "finishing an interrupted resume");
      if (!kept) stores.snapshots.setResuming(snapshot.id, false);
    }),
  );
}

/** False when no process of the container runs, so that its stored memory still counts. */
async function keep({ id }: Snapshot, container: KnownContainer, deps: InterruptedResumesDeps): Promise<boolean> {
  const { docker, stores, log } = deps;
  const { files } = deps.memory;
  const containerId = container.id;
  // Docker answers when a start of this container under way has ended, and the OCI runtime ends one that hangs.
  const started = container.pid === 0 ? await docker.containers.inspect(containerId) : container;
  if (started === undefined || started.pid === 0) return false;
  const cgroup = tryOpen(docker, started.pid, containerId);
  if (cgroup === undefined) return false;
  await cgroup
    .freeze()
    .catch((error: unknown) => log.warn({ err: error, containerId }, "could not freeze a restored container"));
  if (container.pid !== 0) return true;
  try {
    const manifest = await files.manifest(id);
    await within(VERIFY_LIMIT_MS, (limit) => files.verify(id, manifest, limit));
  } catch (error) {
    log.error({ err: error, snapshotId: id, containerId }, "killed a container that was restored from damaged memory");
    await cgroup.kill();
    return false;
  }
  stores.containers.started({ ...started, id: containerId });
  return true;
}

function tryOpen({ openCgroup }: Docker, pid: number, id: string) {
  try {
    const cgroup: Cgroup = openCgroup(pid, id);
    return cgroup.alive() ? cgroup : undefined;
  } catch {
    return undefined;
  }
}
