/** Constructs the parts that take, keep and restore snapshots. */

import { createKeyedMutex, type KeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { nodeName } from "../../shared/tls/names.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import type { ClaimedStore } from "../blobs/claimed-store.ts";
import { openPeer } from "../blobs/peer.ts";
import type { AgentConfig } from "../config.ts";
import type { Flavour, LiveContainer } from "../containers/live-container.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { Origins } from "../host/origins.ts";
import type { Peering } from "../joining/peering.ts";
import type { Gate } from "../network/gate.ts";
import type { Slots } from "../network/slots.ts";
import type { DiskReserve } from "../node-disk/reserve.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { Turns } from "../sandboxes/pool/turns.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Sources } from "../sandboxes/start.ts";
import type { Snapshot } from "../store/snapshots.ts";
import type { Stores } from "../store/stores.ts";
import { type Arrivals, createArrivals } from "./beyond/arrivals.ts";
import { fetchSnapshot } from "./beyond/fetch-snapshot.ts";
import { createHeldImages, type HeldImages } from "./beyond/held-images.ts";
import { createImageArrivals, type ImageArrivals } from "./beyond/image-arrivals.ts";
import { createImageTrees } from "./beyond/image-trees.ts";
import { imageUploads } from "./beyond/image-uploads.ts";
import { createOffers, type Offers } from "./beyond/offers.ts";
import { snapshotUploads } from "./beyond/snapshot-uploads.ts";
import { createUploads, type Uploads } from "./beyond/uploads.ts";
import type { SnapshotChecks } from "./check/checks.ts";
import { startChecks } from "./check/start-checks.ts";
import { outsideConnections } from "./connections/outside.ts";
import { createEviction } from "./frozen/evict.ts";
import { createFrozenContainers, type FoundFrozen, type FrozenContainers } from "./frozen/frozen.ts";
import type { SnapshotMachine } from "./machine.ts";
import { pooledCopy } from "./restore/pooled-copy.ts";
import type { ReadyCopies } from "./restore/ready-copies.ts";
import { createRescue } from "./restore/rescue.ts";
import { resume } from "./restore/resume.ts";
import { startRewinds } from "./restore/rewinds.ts";
import { startCopy } from "./restore/start-copy.ts";
import { thawPaused } from "./restore/thaw.ts";
import { nameImageBelow, nameImagesBelow } from "./store/docker-images-below.ts";
import { createHolding, type Holding } from "./store/holding.ts";
import { createMemoryImages } from "./store/memory-images.ts";
import { originsHere } from "./store/origins.ts";
import { createSnapshots, type Snapshots } from "./store/snapshots.ts";
import { type Admission, createAdmission } from "./take/admission.ts";
import { checkpoint } from "./take/checkpoint.ts";
import { createCopiesAhead } from "./take/copies-ahead.ts";
import { pause } from "./take/pause.ts";
import type { Taking } from "./take/snapshot-taker.ts";

const MIB = 1024 * 1024;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const NAMING_EVERY_MS = 600_000;

type Settings =
  | "holdHours"
  | "frozenSeconds"
  | "frozenReservedMb"
  | "lazyPagesMb"
  | "poolMemoryPercent"
  | "poolReservedMb"
  | "rewindCopySeconds"
  | "snapshotQuotaMb"
  | "projectSnapshotQuotaMb"
  | "blobStorePaused";

export interface StartSnapshotsDeps {
  readonly config: Pick<AgentConfig, Settings>;
  readonly machine: SnapshotMachine;
  readonly stores: Stores;
  readonly blobStore: ClaimedStore;
  readonly peering: Pick<Peering, "member">;
  readonly slots: Slots;
  readonly gate: Gate;
  readonly disposal: Disposal;
  readonly disk: Pick<DiskReserve, "snapshotRefusal" | "storageRefusal" | "disks" | "seen">;
  /** Of restores and cold starts; fewer for restores of one project. */
  readonly turns: Turns;
  readonly capabilities: Pick<CapabilityWatch, "now" | "memoryRefusal">;
  /** What an earlier agent process left running or frozen. */
  readonly found: { readonly sandboxes: readonly Sandbox[]; readonly frozen: readonly FoundFrozen[] };
  readonly isRunning: (sandboxId: string) => boolean;
  /** Bytes of a sandbox's writable layer, as last measured. */
  readonly diskBytes: (executionId: string) => number;
  /** Where a snapshot is stored has changed. */
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Log;
}

export interface SnapshotParts {
  readonly snapshots: Snapshots;
  readonly uploads: Uploads;
  /** Of the images of templates, by their builds. */
  readonly imageUploads: Uploads;
  readonly heldImages: HeldImages;
  readonly arrivals: Arrivals;
  readonly imageArrivals: ImageArrivals;
  readonly offers: Offers;
  readonly snapshotChecks: SnapshotChecks;
  readonly holding: Holding;
  readonly frozen: FrozenContainers;
  readonly admission: Admission;
  /** Copies that wait for a rewind. */
  readonly readyCopies: ReadyCopies;
  readonly sources: Pick<Sources, "snapshot" | "rewindCopy" | "frozen" | "stored">;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
  readonly taking: Taking;
  /** Keeps the disk of a sandbox that a dump has ended. */
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
  /** Makes a pool entry: a container without an owner, restored from the snapshot. */
  readonly copy: (flavour: Flavour, snapshot: Snapshot, signal: AbortSignal) => Promise<LiveContainer>;
}

export function startSnapshots(deps: StartSnapshotsDeps, teardown: Teardown): SnapshotParts {
  const { config, machine, stores, gate, disposal, found, capabilities, now, log } = deps;
  const { docker, memory } = machine;
  const { containers } = docker;
  const { files, criu } = memory;
  const origins = () => originsHere(capabilities.now(), machine.host);
  const mutex = createKeyedMutex();
  const frozen = createFrozenContainers({
    evict: createEviction({ docker, disposal, slots: deps.slots, stores }),
    keepMs: config.frozenSeconds * 1_000,
    freeMemory: () => machine.host.freeMemory(),
    reservedMemory: config.frozenReservedMb * MIB,
    now,
    log,
  });
  teardown.add("frozen containers", () => frozen.stop());
  for (const { container, snapshotId, ran } of found.frozen) frozen.add(snapshotId, container, ran);

  const images = createMemoryImages({
    files,
    criu,
    origins,
    work: (containerId) => docker.annotations.criuDirectory(containerId),
    lazyBytes: () => (capabilities.now().lazyPages === true ? config.lazyPagesMb * MIB : Number.POSITIVE_INFINITY),
    log,
  });
  images
    .adopt([...found.sandboxes, ...found.frozen].map(({ container }) => container.id))
    .catch((error: unknown) => log.warn({ err: error }, "could not look for page servers"));
  const store = stores.snapshots;
  const copies = createCopiesAhead({ docker, network: machine.network, slots: deps.slots, log });
  teardown.add("containers of copies", () => copies.stop());
  const snapshots = createSnapshots({
    store,
    files,
    frozen,
    containers,
    dropCopies: (id) => copies.drop(id),
    disposal,
    mutex,
    log,
  });
  const holding = createHolding({ store, snapshots, keepMs: config.holdHours * HOUR_MS, now, log });
  const expiring = loop({ name: "holding place", everyMs: MINUTE_MS, log }, () => holding.expire());
  teardown.add("holding place", () => expiring.stop());
  const naming = loop({ name: "images below disks", everyMs: NAMING_EVERY_MS, log }, () =>
    nameImagesBelow({ containers, store, log }),
  );
  teardown.add("images below disks", () => naming.stop());
  teardown.add("old memory", () => snapshots.settled());
  const admission = createAdmission({
    settings: config,
    snapshots: store,
    disk: deps.disk,
    diskBytes: deps.diskBytes,
    diskUsage: machine.disks.usage,
  });
  const outside = outsideConnections({ connections: memory.connections, gate, log });
  const common = { ...machine, stores, gate, frozen, copies, outside, origins, now, log };
  const restoreDeps = {
    ...common,
    slots: deps.slots,
    images,
    turns: deps.turns,
    memoryRefusal: capabilities.memoryRefusal,
  };
  const fromSnapshot: Sources["snapshot"] = (spec, signal) => startCopy(spec, restoreDeps, signal);
  const rewinds = startRewinds(fromSnapshot, { ...restoreDeps, ...deps }, teardown);
  const takeDeps = { ...common, diskBytes: admission.diskBytes };
  const { during, rescue } = createRescue({ ...common, diskBytes: deps.diskBytes });

  const offers = createOffers({ blobs: machine.blobs, containers, files, frozen, snapshots: store, now, log });
  teardown.add("offers to other nodes", () => offers.stop());
  const uploads = uploadsOf(deps, frozen, offers);
  teardown.add("uploads of snapshots", () => uploads.snapshots.stop());
  teardown.add("uploads of images", () => uploads.images.stop());
  const heldImages = createHeldImages({ containers, stores, uploads, log });
  teardown.add("look at images", () => heldImages.stop());
  const arrivals = arrivalsOf(deps, { mutex, origins });
  teardown.add("downloads of snapshots", () => arrivals.stop());
  const imageArrivals = createImageArrivals({
    blobs: machine.blobs,
    containers,
    store: deps.blobStore,
    stores,
    onChange: () => {
      heldImages.look().then(deps.onChange, (error: unknown) => log.warn({ err: error }, "could not look at images"));
    },
    disk: deps.disk,
    peer: (place) => openPeer(place, meetingOf(place.nodeId, deps.peering), machine.blobs.traffic),
    now,
    log,
  });
  teardown.add("downloads of images", () => imageArrivals.stop());
  const snapshotChecks = startChecks(deps);
  teardown.add("checks of snapshots", () => snapshotChecks.stop());

  return {
    snapshots,
    uploads: uploads.snapshots,
    imageUploads: uploads.images,
    heldImages,
    arrivals,
    imageArrivals,
    offers,
    snapshotChecks,
    holding,
    frozen,
    admission,
    readyCopies: rewinds.copies,
    sources: {
      ...rewinds.sources,
      frozen: (spec, signal) => thawPaused(spec, restoreDeps, signal),
      stored: (spec, signal) => resume(spec, restoreDeps, signal),
    },
    mutex,
    copy: (flavour, snapshot, signal) => pooledCopy(flavour, snapshot, restoreDeps, signal),
    rescue,
    taking: {
      async pause(sandbox, request, beforeEnd) {
        const taken = await pause(sandbox, request, { ...takeDeps, beforeEnd });
        const { snapshotId } = request;
        const containerId = sandbox.container.id;
        snapshots.replaced({ id: snapshotId, containerId });
        // The pause ends without it: each millisecond interrupts the sandbox's user.
        void nameImageBelow({ snapshotId, containerId }, { containers, log });
        return taken;
      },
      checkpoint: (sandbox, request) => checkpoint(sandbox, request, takeDeps),
      storing: ({ container }, work) => during(container.id, work),
      complete: ({ container }) => images.complete(container.id),
    },
  };
}

function uploadsOf(
  { config, machine, stores, blobStore, disk, onChange, now, log }: StartSnapshotsDeps,
  frozen: FrozenContainers,
  offers: Offers,
) {
  const { blobs, docker, memory } = machine;
  const { containers } = docker;
  // An image of a template is also the one below the disks of its sandboxes.
  const images = createImageTrees({ containers, work: blobs.work });
  const upload = { blobs, images, containers, files: memory.files, frozen, now };
  const common = { store: blobStore, onChange, now, log };
  return {
    snapshots: createUploads({
      ...common,
      of: snapshotUploads({ stores, paused: config.blobStorePaused, upload, isRead: (id) => offers.isInUse(id) }),
      stored: stores.uploads,
    }),
    images: createUploads({
      ...common,
      of: imageUploads({ stores, containers, blobs, images, disk, now }),
      stored: stores.imageUploads,
    }),
  };
}

function arrivalsOf(
  { machine, stores, blobStore, peering, disk, now, log }: StartSnapshotsDeps,
  { mutex, origins }: { readonly mutex: KeyedMutex; readonly origins: () => Omit<Origins, "envd"> },
): Arrivals {
  const { blobs, docker, memory } = machine;
  const from = { blobs, docker, files: memory.files, stores, disk, origins, now, log };
  return createArrivals({
    store: blobStore,
    snapshots: stores.snapshots,
    peer: (place) => openPeer(place, meetingOf(place.nodeId, peering), blobs.traffic),
    fetch: (wanted, sources, options) => fetchSnapshot(wanted, sources, from, options),
    mutex,
  });
}

function meetingOf(nodeId: string, { member }: Pick<Peering, "member">): Meeting | undefined {
  return member === undefined ? undefined : { credentials: member.credentials, expects: nodeName(nodeId) };
}
