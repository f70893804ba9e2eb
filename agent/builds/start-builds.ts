/** Constructs the builder. */

import { defined } from "../../shared/defined.ts";
import type { AppError } from "../../shared/http/errors.ts";
import { within } from "../../shared/program/deadline.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { Gate } from "../network/gate.ts";
import type { BootSpec } from "../sandboxes/boot.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import { originsHere } from "../snapshots/store/origins.ts";
import type { Snapshots } from "../snapshots/store/snapshots.ts";
import type { Admission } from "../snapshots/take/admission.ts";
import type { Stores } from "../store/stores.ts";
import { build, buildImage, release } from "./build.ts";
import { takeBuildSnapshot } from "./build-snapshot.ts";
import { type Builds, createBuilds, failInterrupted } from "./builds.ts";
import { pulledName } from "./images/base.ts";
import { cachedLayers, dropLayer, removeBuildGarbage } from "./images/garbage.ts";
import { createLayers } from "./images/layers.ts";
import type { BuildMachine } from "./machine.ts";
import { type BuildContainer, openBuildContainer } from "./steps/build-container.ts";
import type { TemplateFiles } from "./steps/template-files.ts";

const MIB = 1024 * 1024;
const GARBAGE_EVERY_MS = 600_000;
/** How long a failed build, and a deletion, is remembered. */
const REMEMBER_MS = 86_400_000;
/** Time limit of a build container's boot. */
const BOOT_LIMIT_MS = 60_000;
const DISCARD_LIMIT_MS = 3_000;

type Settings = "nodeId" | "baseImage" | "buildConcurrency" | "buildCacheMb" | "buildLocalImages" | "buildRegistries";

export interface StartBuildsDeps {
  readonly config: Pick<AgentConfig, Settings>;
  readonly machine: BuildMachine;
  readonly stores: Stores;
  readonly boot: (spec: BootSpec, signal: AbortSignal) => Promise<LiveContainer>;
  readonly disposal: Disposal;
  readonly gate: Gate;
  readonly stored: {
    readonly snapshots: Pick<Snapshots, "delete">;
    readonly admission: Pick<Admission, "admit" | "diskBytes">;
  };
  readonly capabilities: Pick<CapabilityWatch, "now" | "memoryRefusal">;
  readonly templateFiles: TemplateFiles;
  /** Why no build can begin on the node's disk. */
  readonly refusal: () => AppError | undefined;
  /** Resolves when the leftovers of an earlier agent process are removed. */
  readonly cleared: Promise<unknown>;
  /** Other limits for tests. */
  readonly readyEveryMs?: number;
  readonly defaultWaitS?: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface BuildParts {
  readonly builds: Builds;
  /** Containers in which builds run now. */
  buildContainers(): readonly { readonly buildId: string; readonly container: LiveContainer }[];
  readonly cache: {
    /** Cached layers, least recently used first. `inUse`: a build under way may need it. */
    layers(): readonly { readonly id: string; readonly inUse: boolean }[];
    drop(key: string): Promise<void>;
  };
}

export function startBuilds(deps: StartBuildsDeps, teardown: Teardown): BuildParts {
  const { config, machine, stores, boot, disposal, gate, capabilities, now, log } = deps;
  const { snapshots, admission } = deps.stored;
  const origins = () => originsHere(capabilities.now(), machine.host);
  const { docker, disks } = machine;
  const { containers } = docker;
  const store = stores.builds;
  const takeSnapshot = takeBuildSnapshot({
    taking: { ...machine, stores, origins, now, log },
    memoryRefusal: capabilities.memoryRefusal,
    admission,
  });
  const layers = createLayers({ containers, findHole: disks.findHole, store: stores.layers, now });
  const containerDeps = { ...machine, processes: machine.tools.processes, boot, disposal, gate, now };
  const mutex = createKeyedMutex();
  const buildContainers = new Map<LiveContainer, string>();
  const watched = (buildContainer: BuildContainer, buildId: string): BuildContainer => {
    buildContainers.set(buildContainer.container, buildId);
    return {
      ...buildContainer,
      close: () => buildContainer.close().finally(() => buildContainers.delete(buildContainer.container)),
    };
  };
  const forget = (snapshotId: string) => snapshots.delete(snapshotId);
  const discard = async (buildId: string, snapshotId: string | undefined) => {
    if (snapshotId !== undefined) await forget(snapshotId);
    // Sandboxes of the build may still run.
    await release(buildImage(buildId), containers, DISCARD_LIMIT_MS);
    await release(pulledName(config.nodeId, buildId), containers, DISCARD_LIMIT_MS);
  };
  const builds = createBuilds({
    store,
    discard,
    semaphore: createSemaphore(config.buildConcurrency),
    refusal: deps.refusal,
    build: (request, { log: lines, progress }, signal) => {
      const { templateId, resources } = request.body;
      return build(
        request,
        {
          deps: {
            ...defined({ readyEveryMs: deps.readyEveryMs, defaultWaitS: deps.defaultWaitS }),
            containers,
            login: machine.tools.login,
            layers,
            mutex,
            takeSnapshot,
            forget,
            nodeId: config.nodeId,
            baseImage: config.baseImage,
            localImages: config.buildLocalImages,
            registries: config.buildRegistries,
            files: deps.templateFiles,
            now,
            log,
            open: async (image, until) =>
              watched(
                await within(BOOT_LIMIT_MS, (limit) =>
                  openBuildContainer(
                    { buildId: request.buildId, templateId, image, resources },
                    containerDeps,
                    AbortSignal.any([until, limit]),
                  ),
                ),
                request.buildId,
              ),
          },
          log: lines,
          progress,
        },
        signal,
      );
    },
    now,
    log,
  });
  const tidied = deps.cleared
    .then(() => failInterrupted({ store, discard, now, log }))
    .catch((error: unknown) => log.warn({ err: error }, "could not remove interrupted builds"));
  teardown.add("interrupted builds", () => tidied);
  const garbage = loop({ name: "build garbage", everyMs: GARBAGE_EVERY_MS, log }, async () => {
    await tidied;
    store.prune(now() - REMEMBER_MS);
    const { nodeId, buildCacheMb } = config;
    await removeBuildGarbage({ containers, stores, nodeId, budgetBytes: buildCacheMb * MIB });
  });
  teardown.add("build garbage", () => garbage.stop());
  return {
    builds,
    buildContainers: () => [...buildContainers].map(([container, buildId]) => ({ container, buildId })),
    cache: {
      layers: () => cachedLayers(stores),
      drop: (key) => dropLayer(key, { containers, stores }),
    },
  };
}
