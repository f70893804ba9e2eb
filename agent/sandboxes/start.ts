/** Decides where a sandbox comes from (the pool, a boot, stored memory, a pause), and starts it: one table shows all origins. */

import type { Origin, StartRequest } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { KeyedMutex } from "../../shared/program/keyed-mutex.ts";
import { keepPart } from "../../shared/program/tracing/spans.ts";
import { createTiming } from "../../shared/program/tracing/timing.ts";
import type { Snapshot } from "../store/snapshots.ts";
import type { Stores } from "../store/stores.ts";
import type { Launched, LaunchSpec } from "./become-sandbox.ts";

/**
 * Gets a container and turns it into the sandbox. Undefined: it has none, or had one that was not usable. It leaves
 * nothing behind in that case, nor when it rejects.
 */
type Source<Spec = LaunchSpec> = (spec: Spec, signal: AbortSignal) => Promise<Launched | undefined>;

export interface FromSnapshot extends LaunchSpec {
  readonly origin: Origin;
}

export interface Sources {
  /** A frozen container of the pool. */
  readonly pool: Source;
  /** A new container; a start that waits for its turn takes one of the pool if that is ready before. */
  readonly boot: Source;
  /** A frozen container of the pool that is a copy of the template's stored memory. */
  readonly pooledMemory: Source;
  /** A new container with the disk of a snapshot, and its memory if the request asks for that. */
  readonly snapshot: Source<FromSnapshot>;
  /** The copy that waits for the rewind of this sandbox to this snapshot. */
  readonly rewindCopy: Source<FromSnapshot>;
  /** The paused sandbox's own container, if it is still frozen in memory. */
  readonly frozen: Source<FromSnapshot>;
  /** The paused sandbox's disk, and its stored memory if the request asks for that. */
  readonly stored: Source<FromSnapshot>;
}

export interface StartDeps {
  readonly sources: Sources;
  /** One operation at a time per snapshot of a paused sandbox. */
  readonly mutex: KeyedMutex;
  readonly stores: TemplateMemoryStores;
  /** Runs what the template starts in a sandbox. */
  readonly startCommand: (body: StartRequest, launched: Launched, signal: AbortSignal) => Promise<void>;
}

export type Start = (spec: Omit<LaunchSpec, "timing">, signal: AbortSignal) => Promise<Launched>;

export function createStart({ sources, mutex, stores, startCommand }: StartDeps): Start {
  const { pool, boot, pooledMemory, snapshot, rewindCopy, frozen, stored } = sources;
  /** What the request names → the sources, in the order in which they are tried. */
  const fromTemplate = [pool, boot];
  const fromStored = {
    templateMemory: [pooledMemory, snapshot],
    /** A create from a snapshot, or a fork. */
    snapshot: [snapshot],
    paused: [frozen, stored],
    /** Another container, beside that of the running or paused sandbox. */
    rewind: [rewindCopy, snapshot],
  };

  const originOf = ({ build }: StartRequest, { is, snapshotId, memory }: Origin): keyof typeof fromStored => {
    if (is !== "snapshot") return is;
    return memory && templateMemory(build.buildId, stores)?.id === snapshotId ? "templateMemory" : "snapshot";
  };

  const begin = (spec: LaunchSpec, signal: AbortSignal): Promise<Launched> => {
    const { body } = spec;
    const { origin } = body;
    if (origin === undefined) return firstOf(fromTemplate, spec, signal);
    const is = originOf(body, origin);
    const start = () => firstOf(fromStored[is], { ...spec, origin }, signal);
    return is === "paused" ? mutex(origin.snapshotId, start) : start();
  };

  return async (spec, signal) => {
    const timing = createTiming(keepPart);
    const launched = await begin({ ...spec, timing }, signal);
    await timing.measure("command", () => startCommand(spec.body, launched, signal));
    return { ...launched, times: Object.fromEntries(timing.parts()) };
  };
}

/** Tries the sources in their order, and after the last the first again: that one had a container that was not usable. */
async function firstOf<Spec>(sources: readonly Source<Spec>[], spec: Spec, signal: AbortSignal): Promise<Launched> {
  for (;;) {
    for (const source of sources) {
      const launched = await source(spec, signal);
      if (launched !== undefined) return launched;
    }
  }
}

interface TemplateMemoryStores {
  readonly builds: Pick<Stores["builds"], "get">;
  readonly snapshots: Pick<Stores["snapshots"], "get">;
}

/** The stored memory of a template, of which the pool keeps copies. Undefined: containers of the template are booted. */
export function templateMemory(buildId: string, { builds, snapshots }: TemplateMemoryStores): Snapshot | undefined {
  const made = builds.get(buildId)?.result?.snapshot;
  const snapshot = made === undefined ? undefined : snapshots.get(made.snapshotId);
  return snapshot?.memory === true && snapshot.state === "stored" ? snapshot : undefined;
}

/**
 * The reason of a failed start, for its caller. If the time limit has passed or the stop has arrived, that is the reason, and not what the error says.
 * @param signal of the limit and the stop together
 * @param cancelled of the stop alone
 */
export function whyNotStarted(error: unknown, signal: AbortSignal, cancelled: AbortSignal): unknown {
  if (cancelled.aborted) return cancelled.reason as unknown;
  if (!signal.aborted) return error;
  return new AppError("sandbox_create_failed", "the sandbox did not start in time", { cause: error });
}
