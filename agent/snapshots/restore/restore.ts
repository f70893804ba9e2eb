/** Starts a stopped or new container until its envd answers: with its memory, or from its disk. */

import type { VolumeMount } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { within } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import { noTiming, type Timing } from "../../../shared/program/tracing/timing.ts";
import { isSize } from "../../containers/cgroup/limits.ts";
import type { Containers, InspectedContainer } from "../../containers/containers.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Slot } from "../../network/addresses.ts";
import type { Slots } from "../../network/slots.ts";
import { envdAnswers } from "../../sandboxes/boot.ts";
import type { Turns } from "../../sandboxes/pool/turns.ts";
import type { Snapshot, SnapshotDisk } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import { mountVolumes } from "../../volumes/mounts.ts";
import type { Volumes } from "../../volumes/volumes.ts";
import { stopped } from "../frozen/evict.ts";
import type { MemoryImages } from "../store/memory-images.ts";
import type { Memory } from "../take/host-memory.ts";
import type { StartAhead } from "../take/start-ahead.ts";
import { restoreTookTooLong, whyNotRestored } from "./reason.ts";

/**
 * Time limit from Docker's start to an envd that answers, for a restore with memory. A good restore takes some tenths of
 * a second, and large memory is restored lazily: one that takes longer hangs, and others wait for its permit. Shorter than
 * the limit of svc-runc, which would end the restore without the words for its owner.
 */
export const RESTORE_LIMIT_MS = 20_000;

/** An earlier version of svc-runc does not wait for memory, and boots the disk. */
const OTHER_RUNTIME = "the OCI runtime of the node is of another version; its operator runs ./scripts/up again";

export interface RestoreContainerDeps {
  readonly docker: Docker;
  readonly memory: Memory;
  readonly volumes: Volumes;
  readonly slots: Slots;
  readonly stores: Stores;
  readonly images: MemoryImages;
  /** Undefined where this node can restore memory. */
  readonly memoryRefusal: (what: string) => AppError | undefined;
  /** Of restores and cold starts; fewer for restores of one project. */
  readonly turns: Turns;
  readonly now: () => number;
  readonly log: Log;
}

export interface RestoreSpec {
  readonly disk: SnapshotDisk;
  /** The snapshot whose memory is restored. */
  readonly memoryOf: Snapshot | undefined;
  /** The project whose limit it counts against. */
  readonly owner: string | undefined;
  /** The start that waits for it. Absent: an entry of the pool. */
  readonly executionId?: string;
  /** What it sees: the same ones as when its memory was stored. */
  readonly volumes: readonly VolumeMount[];
  /** What its parts take. */
  readonly timing?: Timing;
  /** The caller has just made the container, of this size: Docker is not asked whether it runs. */
  readonly made?: boolean;
  /** Its start, which waits for the memory; the caller ends it with the container and its network when this rejects. */
  readonly begun?: StartAhead;
}

export interface Restored {
  /** Its record has no process yet: the caller calls `stores.containers.started` once `verified` resolves. */
  readonly container: LiveContainer;
  /** Resolves when the memory image was complete and unchanged. Before that nothing reaches the sandbox, and it reaches nothing. */
  readonly verified: Promise<void>;
}

/** @throws {AppError} memory_snapshots_unavailable, before anything is changed */
export function refuseMemory(what: string, { memoryRefusal }: Pick<RestoreContainerDeps, "memoryRefusal">): void {
  const refusal = memoryRefusal(what);
  if (refusal !== undefined) throw refusal;
}

export async function restoreContainer(
  { disk, memoryOf, owner, executionId, volumes: mounts, timing = noTiming, made, begun }: RestoreSpec,
  deps: RestoreContainerDeps,
  { teardown, signal }: { teardown: Teardown; signal: AbortSignal },
): Promise<Restored> {
  const { docker, volumes, stores, images } = deps;
  const { containers, annotations } = docker;
  const { criu, connections, restoreLimitMs: limitMs = RESTORE_LIMIT_MS } = deps.memory;
  const { containerId: id, controlToken } = disk;
  const turn = () => deps.turns.take({ owner: memoryOf === undefined ? undefined : owner, executionId }, signal);
  const release = await timing.measure("wait", turn);
  try {
    const memory = memoryOf === undefined ? undefined : await images.open(memoryOf, signal);
    if (memory !== undefined) teardown.add("page server", () => memory.abandon());
    if (made !== true) await readyToStart(disk, containers);
    signal.throwIfAborted();

    const slot = begun === undefined ? await ownSlot(id, deps, teardown) : begun.slot;
    const { build, resources, runtime, createdAt } = disk;
    const starting = { id, slot, controlToken, build, resources, runtime, createdAt };
    // Docker completes the start even if this agent dies before: then the next agent finds the container's slot here.
    stores.containers.add({ ...starting, pid: 0, upperDirectory: disk.upperDirectory });
    teardown.add("container", () => stores.containers.remove(id));
    const inside = memory?.inside;
    const annotate = async () => {
      // Its start has begun with them.
      if (begun !== undefined) return;
      await Promise.all([
        annotations.joinNetwork(id, slot.netnsPath, memory === undefined || inside !== undefined),
        annotations.allowRenames(id),
        mountVolumes(id, mounts, { annotations, volumes }),
      ]);
    };
    await Promise.all([annotate(), inside === undefined ? undefined : connections.prepare(slot, inside)]);
    if (memory !== undefined)
      await annotations.restore(id, memory.directory, memory.lazy ? () => memory.serve(id) : undefined);
    signal.throwIfAborted();

    const started = { known: false };
    // Docker may start the container although it answered with an error, and the shim may although Docker has died.
    teardown.add("processes", async () => {
      if (!started.known) {
        await annotations.remove(id);
        await criu.endRestore(id);
      }
      await containers.kill(id);
      await stopped(id, containers);
    });
    const up = async (limited: AbortSignal) => {
      const start = (begun?.started ?? containers.start(id)).catch((cause: unknown) => {
        if (memory === undefined) throw cause;
        throw notRestored(whyNotRestored(cause), cause);
      });
      await timing.measure("restore", () => (memory === undefined ? start : unlessOver(start, limited)));
      started.known = true;
      if (begun !== undefined && !(await annotations.wasRestored(id))) throw notRestored(OTHER_RUNTIME, undefined);
      signal.throwIfAborted();

      return timing.measure("ready", () => envdAnswers({ id, slot, controlToken }, docker, limited));
    };
    const upInTime = async (limit: AbortSignal) => {
      try {
        return await up(AbortSignal.any([signal, limit]));
      } catch (cause) {
        if (signal.aborted) throw cause;
        const isLate = limit.aborted;
        // A damaged image can fail the restore before its check is through, and then the damage is the reason.
        await memory?.verified;
        if (!isLate) throw cause;
        throw notRestored(restoreTookTooLong(limitMs / 1000), cause);
      }
    };
    const { found, cgroup } = await (memory === undefined ? up(signal) : within(limitMs, upInTime));
    if (inside !== undefined) await connections.release(slot, inside);
    memory?.restored(() => void cgroup.kill().catch(() => undefined));

    const container = { ...starting, pid: found.pid, cgroup, upperDirectory: found.upperDirectory };
    return { container, verified: memory?.verified ?? Promise.resolve() };
  } finally {
    release();
  }
}

async function ownSlot(
  id: string,
  { slots, docker: { annotations } }: Pick<RestoreContainerDeps, "slots" | "docker">,
  teardown: Teardown,
): Promise<Slot> {
  const slot = await slots.take();
  teardown.add("slot", () => slots.give(slot));
  teardown.add("annotations", () => annotations.remove(id));
  return slot;
}

/** This agent process has not started the container, but an earlier one may have: that start may still be under way. */
async function readyToStart(disk: SnapshotDisk, containers: Containers): Promise<void> {
  const { limits } = await stopped(disk.containerId, containers, 0);
  await tellSize(disk, limits, containers);
}

/**
 * Docker starts a container with the limits that it knows, and a container that was resized at its claim may have others:
 * memory that is larger would not fit.
 */
async function tellSize(
  { containerId, resources }: SnapshotDisk,
  known: InspectedContainer["limits"],
  containers: Pick<Containers, "resize">,
): Promise<void> {
  if (known === undefined || !isSize(known, resources)) await containers.resize(containerId, resources);
}

function notRestored(reason: string, cause: unknown): AppError {
  return new AppError("sandbox_create_failed", `the sandbox's memory could not be restored: ${reason}`, { cause });
}

/** Stops waiting; the start continues, and the caller ends it. */
function unlessOver(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => reject(signal.reason as Error);
    if (signal.aborted) over();
    signal.addEventListener("abort", over, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", over));
  });
}
