/** A container that stopped, or a new one, up to an envd that answers: with its memory or from its disk. */

import { AppError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import type { Teardown } from "../../shared/teardown.ts";
import { readyWhileAlive } from "../boot.ts";
import type { OpenCgroup } from "../cgroup.ts";
import type { Containers } from "../containers.ts";
import type { Envd } from "../envd.ts";
import type { LiveContainer } from "../live-container.ts";
import type { Marks } from "../marks.ts";
import type { Slots } from "../network/slots.ts";
import type { Disk, Snapshot } from "../store/snapshots.ts";
import type { Stores } from "../store/stores.ts";
import type { Turns } from "../turns.ts";
import { stopped } from "./cooling.ts";
import type { Criu } from "./criu.ts";
import type { SnapshotFiles } from "./files.ts";
import type { Images } from "./images.ts";

export interface ReviveDeps {
  readonly containers: Pick<Containers, "start" | "inspect" | "kill">;
  readonly slots: Pick<Slots, "take" | "give">;
  readonly marks: Pick<Marks, "joinNetwork" | "restore" | "remove">;
  readonly openCgroup: OpenCgroup;
  readonly envd: Pick<Envd, "init" | "ready" | "resumeWatches">;
  readonly stores: Pick<Stores, "snapshots" | "executions" | "containers">;
  readonly files: SnapshotFiles;
  readonly images: Images;
  readonly criu: Pick<Criu, "endRestore">;
  /** Restores and cold starts at a time. */
  readonly turns: Turns;
  readonly now: () => number;
  readonly log: Log;
}

export interface Revive {
  readonly disk: Disk;
  /** The snapshot whose memory comes back. */
  readonly memoryOf: Snapshot | undefined;
}

export interface Revived {
  readonly container: LiveContainer;
  /** Its memory was what had been written. Until then nobody may reach it. */
  readonly verified: Promise<void>;
}

export async function revive(
  { disk, memoryOf }: Revive,
  deps: ReviveDeps,
  { teardown, signal }: { teardown: Teardown; signal: AbortSignal },
): Promise<Revived> {
  const { containers, slots, marks, openCgroup, envd, stores, images } = deps;
  const { containerId: id, controlToken } = disk;
  const turn = await deps.turns.take(signal);
  try {
    const memory = memoryOf === undefined ? undefined : await images.open(memoryOf, signal);
    if (memory !== undefined) teardown.add("page server", () => memory.abandon());
    // Nothing of ours runs in it: what does is a start that a former agent has asked the engine for.
    await stopped(id, containers, 0);
    signal.throwIfAborted();

    const slot = await slots.take();
    teardown.add("slot", () => slots.give(slot));
    teardown.add("mark", () => marks.remove(id));
    await marks.joinNetwork(id, slot.netnsPath);
    if (memory !== undefined) {
      await marks.restore(id, memory.directory, memory.lazy);
      if (memory.lazy) await memory.serve(id);
    }
    signal.throwIfAborted();

    const started = { known: false };
    // The engine may start it even though its answer was an error, and its shim even though the engine has died.
    teardown.add("processes", async () => {
      if (!started.known) {
        await marks.remove(id);
        await deps.criu.endRestore(id);
      }
      await containers.kill(id);
      await stopped(id, containers);
    });
    await containers.start(id).catch((cause: unknown) => {
      if (memory === undefined) throw cause;
      throw new AppError("sandbox_create_failed", "the sandbox's memory could not be restored", { cause });
    });
    started.known = true;
    signal.throwIfAborted();

    const found = await containers.inspect(id);
    if (found === undefined || found.pid === 0)
      throw new AppError("sandbox_create_failed", "the sandbox's first process ended while it started");
    const cgroup = openCgroup(found.pid, id);
    await readyWhileAlive(cgroup, (limit) => envd.ready({ address: slot.address, controlToken }, limit), signal);
    memory?.restored(() => void cgroup.kill().catch(() => undefined));

    const { build, resources, runtime, createdAt } = disk;
    const { upperDirectory } = found;
    const container = {
      id,
      pid: found.pid,
      slot,
      controlToken,
      cgroup,
      build,
      resources,
      runtime,
      upperDirectory,
      createdAt,
    };
    stores.containers.add(container);
    teardown.add("container", () => stores.containers.remove(id));
    return { container, verified: memory?.verified ?? Promise.resolve() };
  } finally {
    turn();
  }
}
