/** Constructs the parts that take, keep and restore snapshots. */

import { createKeyedMutex, type KeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { Annotations } from "../containers/annotations.ts";
import type { Containers } from "../containers/containers.ts";
import type { Flavour, LiveContainer } from "../containers/live-container.ts";
import type { Machine } from "../host/machine.ts";
import type { Origins } from "../host/origins.ts";
import type { FindHole } from "../node-disk/holes.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Sources } from "../sandboxes/start.ts";
import type { Snapshot } from "../store/snapshots.ts";
import type { Stores } from "../store/stores.ts";
import { outsideConnections } from "./connections/outside.ts";
import type { Criu } from "./criu/criu.ts";
import { createEviction } from "./frozen/evict.ts";
import { createFrozenContainers, type FoundFrozen, type FrozenContainers } from "./frozen/frozen.ts";
import { pooledCopy } from "./restore/pooled-copy.ts";
import { createRescue } from "./restore/rescue.ts";
import { resume } from "./restore/resume.ts";
import { type StartCopyDeps, startCopy } from "./restore/start-copy.ts";
import { type ThawDeps, thawPaused } from "./restore/thaw.ts";
import type { SnapshotFiles } from "./store/files.ts";
import { createHolding, type Holding } from "./store/holding.ts";
import { createMemoryImages } from "./store/images.ts";
import { nameImageBelow, nameImagesBelow } from "./store/images-below.ts";

import { createSnapshots, type Snapshots } from "./store/snapshots.ts";
import { type Admission, createAdmission } from "./take/admission.ts";
import { checkpoint } from "./take/checkpoint.ts";
import { type PauseDeps, pause } from "./take/pause.ts";
import { createSnapshotTaker, type SnapshotTaker } from "./take/snapshot-taker.ts";

const MIB = 1024 * 1024;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const NAMING_EVERY_MS = 600_000;

type Settings =
  | "holdHours"
  | "frozenSeconds"
  | "frozenReservedMb"
  | "lazyPagesMb"
  | "snapshotQuotaMb"
  | "projectSnapshotQuotaMb";

type Given = Omit<ThawDeps & StartCopyDeps, "frozen" | "images" | "outside"> & Pick<PauseDeps, "envd" | "gate">;

export interface StartSnapshotsDeps extends Given {
  readonly config: Pick<AgentConfig, Settings>;
  readonly containers: Containers;
  readonly disposal: Disposal;
  readonly stores: Stores;
  readonly criu: Criu;
  readonly findHole: FindHole;
  readonly files: SnapshotFiles;
  readonly annotations: Annotations;
  readonly machine: Pick<Machine, "freeMemory">;
  readonly origins: () => Omit<Origins, "envd">;
  /** Whether this node can restore memory page by page. */
  readonly lazyPages: () => boolean;
  /** What an earlier agent process left running or frozen. */
  readonly found: { readonly sandboxes: readonly Sandbox[]; readonly frozen: readonly FoundFrozen[] };
  /** Bytes of a sandbox's writable layer, as last measured. */
  readonly diskBytes: (executionId: string) => number;
  readonly diskUsage: (directory: string) => Promise<number | undefined>;
  readonly disk: Pick<DiskReserve, "snapshotRefusal" | "storageRefusal" | "disks" | "seen">;
  readonly log: Log;
}

export interface SnapshotParts {
  readonly snapshots: Snapshots;
  readonly holding: Holding;
  readonly frozen: FrozenContainers;
  readonly admission: Admission;
  readonly sources: Pick<Sources, "snapshot" | "frozen" | "stored">;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
  /** Keeps the disk of a sandbox that a dump has ended. */
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
  /** Makes a pool entry: a container without an owner, restored from the snapshot. */
  readonly copy: (flavour: Flavour, snapshot: Snapshot, signal: AbortSignal) => Promise<LiveContainer>;
  /** Called once there is a live set to take snapshots of. */
  taker(more: TakerSources): SnapshotTaker;
}

interface TakerSources {
  readonly sandboxes: Sandboxes;
  readonly beforeEnd: (sandbox: Sandbox) => Promise<void>;
  readonly onChange: () => void;
}

export function startSnapshots(deps: StartSnapshotsDeps, teardown: Teardown): SnapshotParts {
  const { config, stores, files, log, found } = deps;
  const mutex = createKeyedMutex();
  const frozen = createFrozenContainers({
    evict: createEviction({ ...deps, store: stores.containers }),
    keepMs: config.frozenSeconds * 1_000,
    freeMemory: () => deps.machine.freeMemory(),
    reservedMemory: config.frozenReservedMb * MIB,
    now: deps.now,
    log,
  });
  teardown.add("frozen containers", () => frozen.stop());
  for (const { container, snapshotId, ran } of found.frozen) frozen.add(snapshotId, container, ran);

  const work = (containerId: string) => deps.annotations.criuDirectory(containerId);
  const images = createMemoryImages({
    ...deps,
    work,
    lazyBytes: () => (deps.lazyPages() ? config.lazyPagesMb * MIB : Number.POSITIVE_INFINITY),
  });
  images
    .adopt([...found.sandboxes, ...found.frozen].map(({ container }) => container.id))
    .catch((error: unknown) => log.warn({ err: error }, "could not look for page servers"));
  const snapshots = createSnapshots({ ...deps, store: stores.snapshots, files, frozen, mutex });
  const keepMs = config.holdHours * HOUR_MS;
  const holding = createHolding({ store: stores.snapshots, snapshots, keepMs, now: deps.now, log });
  const expiring = loop({ name: "holding place", everyMs: MINUTE_MS, log }, () => holding.expire());
  teardown.add("holding place", () => expiring.stop());
  const naming = loop({ name: "images below disks", everyMs: NAMING_EVERY_MS, log }, () =>
    nameImagesBelow({ ...deps, store: stores.snapshots }),
  );
  teardown.add("images below disks", () => naming.stop());
  teardown.add("old memory", () => snapshots.settled());
  const { during, rescue } = createRescue({ ...deps, frozen });
  const outside = outsideConnections(deps);
  const restoreDeps = { ...deps, frozen, images, outside };
  const admission = createAdmission({ ...deps, settings: config, snapshots: stores.snapshots });
  const takeDeps = { ...deps, diskBytes: admission.diskBytes };

  return {
    snapshots,
    holding,
    frozen,
    admission,
    sources: {
      snapshot: (spec, signal) => startCopy(spec, restoreDeps, signal),
      frozen: (spec, signal) => thawPaused(spec, restoreDeps, signal),
      stored: (spec, signal) => resume(spec, restoreDeps, signal),
    },
    mutex,
    copy: (flavour, snapshot, signal) => pooledCopy(flavour, snapshot, restoreDeps, signal),
    rescue,
    taker: ({ sandboxes, beforeEnd, onChange }) =>
      createSnapshotTaker({
        sandboxes,
        snapshots: stores.snapshots,
        memoryRefusal: deps.memoryRefusal,
        admit: admission.admit,
        pause: async (sandbox, request) => {
          const taken = await pause(sandbox, request, { ...takeDeps, frozen, outside, beforeEnd });
          const { snapshotId } = request;
          const containerId = sandbox.container.id;
          snapshots.replaced({ id: snapshotId, containerId });
          // Nobody waits for it: a pause is an interruption.
          void nameImageBelow({ snapshotId, containerId }, deps);
          return taken;
        },
        checkpoint: (sandbox, request) => checkpoint(sandbox, request, takeDeps),
        storing: ({ container }, work) => during(container.id, work),
        complete: ({ container }) => images.complete(container.id),
        onChange,
      }),
  };
}
