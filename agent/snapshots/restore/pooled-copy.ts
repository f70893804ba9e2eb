/** Restores an ownerless copy of a template's memory, with a new control token, for the pool to freeze. */

import { randomBytes, randomUUID } from "node:crypto";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { Flavour, LiveContainer } from "../../containers/live-container.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { refuseMemory, restoreContainer } from "./restore.ts";
import type { StartCopyDeps } from "./start-copy.ts";

/** When this rejects, no container is left behind. */
export async function pooledCopy(
  flavour: Flavour,
  snapshot: Snapshot,
  deps: StartCopyDeps,
  signal: AbortSignal,
): Promise<LiveContainer> {
  const { network, images, now, log } = deps;
  const { containers, envd } = deps.docker;
  refuseMemory("a pool entry with a template's memory", deps);
  const teardown = new Teardown(log);
  try {
    // The memory image maps files of the envd version that it was taken with.
    const runtime = await deps.docker.runtime(snapshot.disk.runtime);
    if (runtime.directory !== flavour.runtime || snapshot.image === undefined)
      throw new AppError("snapshot_incompatible", "the template's memory is of another version of envd");
    const controlToken = randomBytes(24).toString("hex");
    const { build, resources } = flavour;
    const createdAt = now();
    const containerId = await containers.create({
      name: `svc-pool-${randomUUID().slice(0, 8)}`,
      build: { ...build, image: snapshot.image },
      resources,
      command: runtime.command,
      env: [`SVC_ENVD_CONTROL=${controlToken}`],
      runtimeDirectory: runtime.directory,
      resolver: network.plan.gateway,
    });
    teardown.add("container", () => containers.remove(containerId));
    signal.throwIfAborted();
    // Its row names its flavour, not the snapshot that it was restored from.
    const disk = { containerId, controlToken, ...flavour, upperDirectory: undefined, createdAt };
    const from = { disk, memoryOf: snapshot, owner: `template ${build.templateId}`, volumes: [], made: true };
    const { container, verified } = await restoreContainer(from, deps, { teardown, signal });
    await verified;
    // A container that is frozen with missing pages would keep its page server for ever.
    await images.complete(containerId);
    const { address } = container.slot;
    const poolIdentity = {
      accessToken: randomBytes(24).toString("hex"),
      envVars: {},
      timestamp: new Date(now()).toISOString(),
      sandboxId: "pool",
      templateId: build.templateId,
      executionId: containerId,
    };
    await envd.init({ address, controlToken: snapshot.disk.controlToken }, { ...poolIdentity, controlToken }, signal);
    await envd
      .resumeWatches({ address, controlToken })
      .catch((error: unknown) => log.warn({ err: error, containerId }, "could not resume the watches of a container"));
    signal.throwIfAborted();
    deps.stores.containers.started(container);
    teardown.release();
    return container;
  } catch (error) {
    await teardown.run();
    throw error;
  }
}
