/**
 * Begins Docker's start of a container whose memory is not there yet: Docker, its shim and svc-runc do their part, and then
 * svc-runc waits for the memory. No process of the sandbox runs before that.
 */

import { within } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { Slot } from "../../network/addresses.ts";
import type { Slots } from "../../network/slots.ts";

export interface StartAhead {
  /** The network that it starts in. */
  readonly slot: Slot;
  /** Resolves when the memory is restored; its failure is handled, whether a caller waits or not. */
  readonly started: Promise<void>;
  /** Resolves when it waits for its memory, has ended, or takes long. */
  readonly waits: Promise<void>;
  /** True when the start has ended. A start that ended before the agent named the memory serves no copy, also when it succeeded. */
  isOver(): boolean;
}

interface StartAheadDeps {
  readonly docker: Pick<Docker, "containers" | "annotations">;
  readonly slots: Pick<Slots, "take" | "give">;
  readonly log: Log;
}

/** A start that does not wait by then delays no other. */
const TURN_MS = 2_000;

/** Of a new container that has its disk, sees no volumes, and gets memory whose dump keeps connections. */
export async function startAhead(id: string, { docker, slots, log }: StartAheadDeps): Promise<StartAhead> {
  const { containers, annotations } = docker;
  const slot = await slots.take();
  try {
    await annotations.joinNetwork(id, slot.netnsPath);
    await annotations.allowRenames(id);
    await annotations.awaitMemory(id);
  } catch (error) {
    await annotations
      .remove(id)
      .catch((cause: unknown) => log.warn({ err: cause, containerId: id }, "could not remove annotations"));
    await slots.give(slot);
    throw error;
  }
  const over = new AbortController();
  const started = containers.start(id);
  const end = () => over.abort();
  started.then(end, end);
  const waits = within(TURN_MS, (limit) => annotations.waitsForMemory(id, AbortSignal.any([over.signal, limit])));
  return { slot, started, waits, isOver: () => over.signal.aborted };
}

/** Ends a start that has begun, with its container. */
export async function endAhead(
  id: string,
  { slot, started }: StartAhead,
  { docker, slots }: Pick<StartAheadDeps, "docker" | "slots">,
): Promise<void> {
  try {
    // svc-runc gives up without them. Docker answers about the container, and removes it, only when its start has ended.
    await docker.annotations.remove(id).catch(() => undefined);
    await started.catch(() => undefined);
    await docker.containers.remove(id);
  } finally {
    await slots.give(slot);
  }
}
