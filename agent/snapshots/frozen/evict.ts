/** Turns a frozen container into its disk alone: kills its processes, frees its address; Docker keeps the container. */

import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import type { Containers, InspectedContainer } from "../../containers/containers.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Slots } from "../../network/slots.ts";
import type { Disposal } from "../../sandboxes/disposal.ts";
import type { Stores } from "../../store/stores.ts";

const STOPPED_LIMIT_MS = 15_000;
const POLL_MS = 10;

export interface EvictionDeps {
  readonly docker: Docker;
  readonly disposal: Disposal;
  readonly slots: Slots;
  readonly stores: Stores;
}

export type Evict = (container: LiveContainer) => Promise<void>;

export function createEviction({ docker, disposal, slots, stores }: EvictionDeps): Evict {
  return async (container) => {
    // Kills all processes while they are frozen, so that none works on the disk while the first one dies.
    for (const pid of processes(container)) tryKill(pid);
    await disposal.kill(container);
    await stopped(container.id, docker.containers).catch(unlessGone);
    await docker.annotations.remove(container.id);
    stores.containers.remove(container.id);
    // Last, because the namespace is free only when the last process in it has ended.
    await slots.give(container.slot);
  };
}

/** Docker has no such container, for example after `docker container prune`: its disk image is still there. */
export class ContainerGone extends AppError {
  constructor() {
    super("sandbox_create_failed", "the sandbox's container was removed from Docker");
  }
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof ContainerGone)) throw error;
}

function processes({ cgroup }: LiveContainer): number[] {
  try {
    return cgroup.processes();
  } catch {
    return [];
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process ended meanwhile.
  }
}

/**
 * Waits until Docker knows that the container has stopped: before that, a start would do nothing and succeed. Usually its
 * processes are dead already and Docker is about to notice; after `patienceMs` it asks Docker to kill the container.
 */
export async function stopped(
  id: string,
  containers: Pick<Containers, "inspect" | "kill">,
  patienceMs = STOPPED_LIMIT_MS / 2,
): Promise<InspectedContainer> {
  const begun = performance.now();
  for (let asked = false; ; ) {
    const found = await containers.inspect(id);
    if (found === undefined) throw new ContainerGone();
    if (!found.running) return found;
    if (performance.now() > begun + STOPPED_LIMIT_MS)
      throw new AppError("unavailable", `the container did not stop within ${STOPPED_LIMIT_MS / 1000} s`);
    if (!asked && performance.now() >= begun + patienceMs) {
      asked = true;
      await containers.kill(id);
    }
    await delay(POLL_MS);
  }
}
