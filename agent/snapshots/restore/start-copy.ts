/** Starts a new sandbox from a checkpoint, with or without the memory: in a shell, or in a new container from the image. */

import { randomBytes } from "node:crypto";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { leastMemoryMb } from "../../containers/cgroup/limits.ts";
import type { Network } from "../../network/host-network.ts";
import { type BecomeSandboxDeps, becomeSandbox, type Launched } from "../../sandboxes/become-sandbox.ts";
import type { FromSnapshot } from "../../sandboxes/start.ts";
import type { Snapshot, SnapshotDisk } from "../../store/snapshots.ts";
import type { Shells } from "../shells/shells.ts";
import { clearLinks } from "../store/clear-links.ts";
import { type RestoreContainerDeps, type RestoreSpec, refuseMemory, restoreContainer } from "./restore.ts";

export interface StartCopyDeps extends RestoreContainerDeps, BecomeSandboxDeps {
  readonly network: Network;
  readonly shells: Pick<Shells, "take" | "discard">;
}

export async function startCopy(spec: FromSnapshot, deps: StartCopyDeps, signal: AbortSignal): Promise<Launched> {
  const { origin, body } = spec;
  const { stores, gate } = deps;
  const snapshot = stores.snapshots.get(origin.snapshotId);
  if (snapshot?.kind !== "checkpoint" || snapshot.state !== "stored" || snapshot.image === undefined)
    throw new AppError("snapshot_files_missing", `this node does not have snapshot ${origin.snapshotId}`);
  const memory = origin.memory && snapshot.memory;
  if (memory) refuseMemory("a start from stored memory", deps);
  if (memory) checkMemory(snapshot, body.resources.memoryMB);
  const teardown = new Teardown(deps.log);
  const restored = { verified: Promise.resolve() };
  try {
    const from = { snapshot, image: snapshot.image, memory };
    const { disk, shell } = (await inShell(spec, from, deps, teardown)) ?? (await create(spec, from, deps, teardown));
    return await becomeSandbox(
      spec,
      {
        containerId: disk.containerId,
        warm: false,
        restored: memory ? "memory" : "disk",
        // envd in the restored memory still has the original's token.
        currentToken: memory ? snapshot.disk.controlToken : undefined,
        watches: memory,
        async run() {
          const { projectId: owner, volumes = [] } = body;
          const source = { disk, memoryOf: memory ? snapshot : undefined, owner, volumes, shell };
          const { container, verified } = await restoreContainer(source, deps, { teardown, signal });
          restored.verified = verified;
          if (!memory) await clearLinks(container, snapshot.id, { ...deps.memory, log: deps.log });
          teardown.add("network", () => gate.close(container.slot));
          return container;
        },
        verified: () => restored.verified,
        record(container, markRunning) {
          stores.containers.started(container);
          markRunning();
        },
      },
      deps,
      { teardown, signal },
    );
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** A copy of the source's own size fits, because its memory did. @throws {AppError} failed_precondition */
function checkMemory({ id, memoryBytes, disk }: Snapshot, memoryMB: number): void {
  const least = Math.min(leastMemoryMb(memoryBytes), disk.resources.memoryMB);
  if (memoryMB >= least) return;
  throw new AppError(
    "failed_precondition",
    `memory of ${memoryMB} MiB is too small for the stored memory of snapshot ${id}: ask for at least ${least} MiB ` +
      "(memoryMB), or start from its disk alone (memory: false)",
  );
}

interface From {
  readonly snapshot: Snapshot;
  readonly image: string;
  readonly memory: boolean;
}

/** The sandbox that is rewound has a container of its usual name. */
function nameOf({ body, origin, executionId }: FromSnapshot): string {
  return origin.is === "rewind" ? `svc-${body.sandboxId}-${executionId.slice(0, 8)}` : `svc-${body.sandboxId}`;
}

interface Made {
  readonly disk: SnapshotDisk;
  readonly shell?: RestoreSpec["shell"];
}

/** Undefined: no container waits for this memory. */
async function inShell(
  spec: FromSnapshot,
  { snapshot, image, memory }: From,
  { docker: { containers }, shells, log }: StartCopyDeps,
  teardown: Teardown,
): Promise<Made | undefined> {
  const { body, timing } = spec;
  const { resources } = body;
  const { runtime } = snapshot.disk;
  const below = memory ? await containers.imageBelow(image) : undefined;
  if (below === undefined) return undefined;
  const shell = await shells.take({ build: { ...body.build, image: below }, resources, runtime });
  if (shell === undefined) return undefined;
  const { id: containerId, slot, controlToken, createdAt } = shell;
  teardown.add("shell", () => shells.discard(shell));
  // For people who ask Docker; nothing depends on the name.
  containers
    .rename(containerId, nameOf(spec))
    .catch((error: unknown) => log.debug({ err: error, containerId }, "could not rename a container"));
  const build = { ...body.build, image };
  const giveDisk = () => timing.measure("disk", () => containers.giveDisk(containerId, image, resources.diskSizeMB));
  const disk = { containerId, controlToken, build, resources, runtime, upperDirectory: undefined, createdAt };
  return { disk, shell: { slot, giveDisk } };
}

async function create(
  spec: FromSnapshot,
  { snapshot, image, memory }: From,
  { docker, network, now }: StartCopyDeps,
  teardown: Teardown,
): Promise<Made> {
  const { body, timing } = spec;
  // The memory image has files of its version of envd mapped.
  const runtime = await docker.runtime(memory ? snapshot.disk.runtime : undefined);
  const controlToken = randomBytes(24).toString("hex");
  const build = { ...body.build, image };
  const createdAt = now();
  const containerId = await timing.measure("create", () =>
    docker.containers.create({
      name: nameOf(spec),
      build,
      resources: body.resources,
      command: runtime.command,
      env: [`SVC_ENVD_CONTROL=${controlToken}`],
      runtimeDirectory: runtime.directory,
      resolver: network.plan.gateway,
    }),
  );
  teardown.add("container", () => docker.containers.remove(containerId));
  const { resources } = body;
  const { directory } = runtime;
  return {
    disk: { containerId, controlToken, build, resources, runtime: directory, upperDirectory: undefined, createdAt },
  };
}
