/** Boots one container until its envd answers; each step has its undo. The container has no identity yet. */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { BuildReference, Resources, VolumeMount } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { Teardown } from "../../shared/program/teardown.ts";
import type { Cgroup } from "../containers/cgroup/cgroup.ts";
import type { InspectedContainer } from "../containers/containers.ts";
import type { Docker } from "../containers/host-docker.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Network } from "../network/host-network.ts";
import type { Slots } from "../network/slots.ts";
import type { Stores } from "../store/stores.ts";
import { mountVolumes } from "../volumes/mounts.ts";
import type { Volumes } from "../volumes/volumes.ts";

const ALIVE_POLL_MS = 50;

export interface BootSpec {
  readonly name: string;
  readonly build: BuildReference;
  readonly resources: Resources;
  /** Docker commits its layer, as in a build. Absent: the layer is only stored whole, as a disk. */
  readonly committed?: boolean;
  /** What it sees from its first process on. Absent: nothing. */
  readonly volumes?: readonly VolumeMount[] | undefined;
}

export interface BootDeps {
  readonly docker: Docker;
  readonly network: Network;
  readonly volumes: Volumes;
  readonly slots: Slots;
  readonly stores: Stores;
  readonly now: () => number;
  readonly log: Log;
}

/** Rejects with nothing left behind. The signal stops it at the next step. */
export async function boot(spec: BootSpec, deps: BootDeps, signal: AbortSignal): Promise<LiveContainer> {
  const teardown = new Teardown(deps.log);
  try {
    const container = await start(spec, deps, { teardown, signal });
    signal.throwIfAborted();
    teardown.release();
    return container;
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function start(
  { name, build, resources, committed = false, volumes: mounts = [] }: BootSpec,
  { docker, network, volumes, slots, stores, now }: BootDeps,
  { teardown, signal }: { teardown: Teardown; signal: AbortSignal },
): Promise<LiveContainer> {
  const { containers, annotations, runtime } = docker;
  const createdAt = now();
  const { directory, command } = await runtime();
  const controlToken = randomBytes(24).toString("hex");

  const slot = await slots.take();
  teardown.add("slot", () => slots.give(slot));
  signal.throwIfAborted();

  const id = await containers.create({
    name,
    build,
    resources,
    command,
    env: [`SVC_ENVD_CONTROL=${controlToken}`],
    runtimeDirectory: directory,
    resolver: network.plan.gateway,
  });
  teardown.add("container", () => containers.remove(id));
  signal.throwIfAborted();

  teardown.add("annotations", () => annotations.remove(id));
  await annotations.joinNetwork(id, slot.netnsPath);
  if (!committed) await annotations.allowRenames(id);
  await mountVolumes(id, mounts, { annotations, volumes });

  // Before a program inside can send, the firewall has pinned the address and denies all traffic.
  await containers.start(id);
  signal.throwIfAborted();

  const { found, cgroup } = await envdAnswers({ id, slot, controlToken }, docker, signal);

  const container: LiveContainer = {
    id,
    pid: found.pid,
    slot,
    controlToken,
    cgroup,
    build,
    resources,
    runtime: directory,
    upperDirectory: found.upperDirectory,
    createdAt,
  };
  stores.containers.add(container);
  teardown.add("row", () => stores.containers.remove(id));
  return container;
}

/** Waits for the envd of a container that Docker has started. Docker describes the container while envd is asked. */
export async function envdAnswers(
  { id, slot, controlToken }: Pick<LiveContainer, "id" | "slot" | "controlToken">,
  { containers, openCgroup, envd }: Docker,
  signal: AbortSignal,
): Promise<{ readonly found: InspectedContainer; readonly cgroup: Cgroup }> {
  const done = new AbortController();
  const either = AbortSignal.any([signal, done.signal]);
  const ready = envd.ready({ address: slot.address, controlToken }, either);
  // The race below has its failure, unless the container is found dead before.
  ready.catch(() => undefined);
  try {
    const found = await containers.inspect(id);
    if (found === undefined || found.pid === 0) throw ended();
    const cgroup = openCgroup(found.pid, id);
    const dead = untilDead(cgroup, either);
    dead.catch(() => undefined);
    await Promise.race([ready, dead]);
    return { found, cgroup };
  } finally {
    done.abort();
  }
}

// A container that dies at once (for example of an image for another processor) must not cost the whole time limit.
async function untilDead(cgroup: Pick<Cgroup, "alive">, signal: AbortSignal): Promise<never> {
  while (cgroup.alive()) await delay(ALIVE_POLL_MS, undefined, { signal });
  throw ended();
}

function ended(): AppError {
  return new AppError("sandbox_create_failed", "the sandbox's first process ended while it started");
}
