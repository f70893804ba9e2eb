/** Starts a new sandbox from a checkpoint: makes a new container from the image, with or without the memory. */

import { randomBytes } from "node:crypto";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { leastMemoryMb } from "../../containers/cgroup/limits.ts";
import type { EnvdRuntime } from "../../containers/envd-runtime.ts";
import type { Network } from "../../network/host-network.ts";
import {
  type BecomeSandboxDeps,
  becomeSandbox,
  type Launched,
  type LaunchSpec,
} from "../../sandboxes/become-sandbox.ts";
import type { FromSnapshot } from "../../sandboxes/start.ts";
import type { Snapshot, SnapshotDisk } from "../../store/snapshots.ts";
import { clearLinks } from "../store/clear-links.ts";
import type { AheadContainer, CopiesAhead } from "../take/copies-ahead.ts";
import { type RestoreContainerDeps, refuseMemory, restoreContainer } from "./restore.ts";

export interface StartCopyDeps extends RestoreContainerDeps, BecomeSandboxDeps {
  readonly network: Network;
  readonly copies: Pick<CopiesAhead, "take" | "discard">;
}

/** Name for people who ask Docker; nothing depends on it, so the first command comes first. */
const TELL_DOCKER_AFTER_MS = 250;

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
    const { ahead, ...disk } = await spec.timing.measure("create", () => create(spec, from, deps, teardown));
    const launched = await becomeSandbox(
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
          const { executionId, timing } = spec;
          const from = {
            disk,
            memoryOf: memory ? snapshot : undefined,
            owner,
            executionId,
            volumes,
            timing,
            made: true,
            ...defined({ begun: ahead?.start }),
          };
          const { container, verified } = await restoreContainer(from, deps, { teardown, signal });
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
    if (ahead !== undefined) renameLater(disk.containerId, `svc-${body.sandboxId}`, deps);
    return launched;
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

export interface From {
  readonly snapshot: Snapshot;
  readonly image: string;
  readonly memory: boolean;
}

async function create(
  { body, origin, executionId }: FromSnapshot,
  from: From,
  deps: StartCopyDeps,
  teardown: Teardown,
): Promise<SnapshotDisk & { readonly ahead: AheadContainer | undefined }> {
  const runtime = await runtimeOf(from, deps);
  const startable = from.memory && (body.volumes ?? []).length === 0;
  const wanted = { resources: body.resources, runtime: runtime.directory, startable };
  const ahead = origin.is === "snapshot" ? await deps.copies.take(origin.snapshotId, wanted) : undefined;
  if (ahead !== undefined) teardown.add("container ahead", () => deps.copies.discard(ahead));
  // The sandbox that is rewound has a container of its usual name.
  const name = origin.is === "rewind" ? `svc-${body.sandboxId}-${executionId.slice(0, 8)}` : `svc-${body.sandboxId}`;
  return { ...(await containerOf({ body, name, ahead }, { ...from, runtime }, deps, teardown)), ahead };
}

/** The memory image has files of its version of envd mapped. */
export function runtimeOf({ snapshot, memory }: From, { docker }: Pick<StartCopyDeps, "docker">): Promise<EnvdRuntime> {
  return docker.runtime(memory ? snapshot.disk.runtime : undefined);
}

/** A new container with the disk of the snapshot, or that one was made ahead. The teardown removes a new one. */
export async function containerOf(
  {
    body,
    name,
    ahead,
  }: Pick<LaunchSpec, "body"> & { readonly name: string; readonly ahead: AheadContainer | undefined },
  { image, runtime }: From & { readonly runtime: EnvdRuntime },
  { docker, network, now }: Pick<StartCopyDeps, "docker" | "network" | "now">,
  teardown: Teardown,
): Promise<SnapshotDisk> {
  const { resources } = body;
  const { controlToken } = ahead ?? { controlToken: randomBytes(24).toString("hex") };
  const build = { ...body.build, image };
  const createdAt = now();
  const containerId = await docker.containers.create({
    name,
    build,
    resources,
    command: runtime.command,
    env: [`SVC_ENVD_CONTROL=${controlToken}`],
    runtimeDirectory: runtime.directory,
    resolver: network.plan.gateway,
    ...defined({ made: ahead?.containerId }),
  });
  if (ahead === undefined) teardown.add("container", () => docker.containers.remove(containerId));
  const rest = { build, resources, runtime: runtime.directory, upperDirectory: undefined, createdAt };
  return { containerId, controlToken, ...rest };
}

function renameLater(containerId: string, name: string, { docker, log }: Pick<StartCopyDeps, "docker" | "log">): void {
  setTimeout(() => {
    docker.containers
      .rename(containerId, name)
      .catch((error: unknown) => log.debug({ err: error, containerId }, "could not tell Docker a container's name"));
  }, TELL_DOCKER_AFTER_MS).unref();
}
