/** Constructs the builder. */

import type { AppError } from "../../shared/http/errors.ts";
import { anySignal } from "../../shared/program/any-signal.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { Containers } from "../containers/containers.ts";
import type { CaFor, Envd, NetworkVariables } from "../containers/envd.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Gate } from "../network/gate.ts";
import type { ReadSpace } from "../node-disk/space.ts";
import type { BootSpec } from "../sandboxes/boot.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { Snapshots } from "../snapshots/store/snapshots.ts";
import type { Stores } from "../store/stores.ts";
import { build, buildImage, release } from "./build.ts";
import { type TakeBuildSnapshotDeps, takeBuildSnapshot } from "./build-snapshot.ts";
import { type Builds, createBuilds, failInterrupted } from "./builds.ts";
import { pulledName } from "./images/base.ts";
import { cachedLayers, dropLayer, removeBuildGarbage } from "./images/garbage.ts";
import { createLayers } from "./images/layers.ts";
import type { Login } from "./images/registry-login.ts";
import { type BuildContainer, openBuildContainer } from "./steps/build-container.ts";
import type { Processes } from "./steps/processes.ts";
import type { TemplateFiles } from "./steps/template-files.ts";

const MIB = 1024 * 1024;
const GARBAGE_EVERY_MS = 600_000;
/** How long a failed build, and a deletion, is remembered. */
const REMEMBER_MS = 86_400_000;
/** Time limit of a build container's boot. */
const BOOT_LIMIT_MS = 60_000;
const DISCARD_LIMIT_MS = 3_000;

type Settings = "nodeId" | "baseImage" | "buildConcurrency" | "buildCacheMb" | "buildLocalImages" | "buildRegistries";

export interface StartBuildsDeps extends Omit<TakeBuildSnapshotDeps, "store" | "stores" | "containers" | "envd"> {
  readonly config: Pick<AgentConfig, Settings>;
  readonly boot: (spec: BootSpec, signal: AbortSignal) => Promise<LiveContainer>;
  readonly containers: Containers;
  readonly disposal: Disposal;
  readonly gate: Pick<Gate, "open">;
  readonly envd: Envd;
  readonly caFor: CaFor;
  readonly networkVariables: NetworkVariables;
  readonly stores: Pick<Stores, "builds" | "layers" | "snapshots" | "remains">;
  readonly snapshots: Pick<Snapshots, "delete">;
  readonly processes: Processes;
  readonly templateFiles: TemplateFiles;
  readonly login: Login;
  readonly readSpace: ReadSpace;
  /** Why no build can begin on the node's disk. */
  readonly refusal: () => AppError | undefined;
  /** Resolves when the leftovers of an earlier agent process are removed. */
  readonly cleared: Promise<unknown>;
  /** Other limits for tests. */
  readonly readyEveryMs?: number;
  readonly defaultWaitS?: number;
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
  const { config, containers, stores, snapshots, now, log } = deps;
  const store = stores.builds;
  const takeSnapshot = takeBuildSnapshot({ ...deps, store });
  const layers = createLayers({ ...deps, store: stores.layers });
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
            ...deps,
            layers,
            mutex,
            takeSnapshot,
            forget,
            nodeId: config.nodeId,
            baseImage: config.baseImage,
            localImages: config.buildLocalImages,
            registries: config.buildRegistries,
            files: deps.templateFiles,
            open: async (image, until) =>
              watched(
                await openBuildContainer(
                  { buildId: request.buildId, templateId, image, resources },
                  deps,
                  anySignal(until, AbortSignal.timeout(BOOT_LIMIT_MS)),
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
