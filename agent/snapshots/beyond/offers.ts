/**
 * What this node has described for other nodes, which read it from here while both live: stored snapshots, and the images below
 * their disks. An offer is opened by its ticket only, and ends some minutes after its last use.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Offer } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { sameSecret } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import { createSemaphore } from "../../../shared/program/semaphore.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { Packing } from "../../blobs/content/packing.ts";
import { type TreeSource, treeSource } from "../../blobs/from-files.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import { type UploadDeps, uploadTree } from "../../blobs/upload.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Snapshot, SnapshotStore } from "../../store/snapshots.ts";
import { type DescribeDeps, type Described, describeSnapshot, holdDisk } from "./describe-snapshot.ts";
import { unpackImage } from "./image-trees.ts";

/** An answer waits so long for the end, so that small snapshots need one request. */
const WAIT_MS = 5_000;
const KEPT_MS = 600_000;
const SWEEP_EVERY_MS = 60_000;
const MOST_OFFERS = 32;
/** An offer that nobody has used for this long gives way to another one. */
const IDLE_MS = 30_000;
/** Blobs that are read for others at a time. Not of the limit of uploads and downloads: two nodes that read from each other would wait for ever. */
const SERVED_AT_ONCE = 4;

export interface OffersDeps extends DescribeDeps {
  readonly blobs: Pick<Blobs, "codec" | "extents" | "transfers" | "traffic" | "work">;
  readonly containers: Pick<Containers, "diskFile" | "save" | "image">;
  readonly snapshots: Pick<SnapshotStore, "get">;
  readonly now: () => number;
  readonly log: Log;
  /** For tests. */
  readonly waitMs?: number;
}

export interface Offers {
  /** Begins or joins; answers how far the description is. @throws {AppError} not_found, conflict, failed_precondition */
  snapshot(snapshotId: string): Promise<Offer>;
  /** The same for an image of Docker, by its name or id. @param domain the project that names its blobs */
  image(image: string, domain: string): Promise<Offer>;
  /** The snapshot is being deleted: what is offered of it ends. */
  forget(snapshotId: string): Promise<void>;
  /** For another node: the stored bytes of a blob. Undefined: the offer does not have it. @throws {AppError} unauthorized; {BlobError} */
  read(ticket: string, ref: string, signal: AbortSignal, packing?: Packing): Promise<Uint8Array | undefined>;
  /** For another node: the reference of the image below the offered disk, which is described when the first node lacks it. */
  imageOf(ticket: string): Promise<{ readonly ref: string | undefined }>;
  /** Another node reads it, or is about to. */
  isInUse(snapshotId: string): boolean;
  stop(): Promise<void>;
}

interface Work {
  readonly ended: Promise<Described | undefined>;
  failure?: Error;
  tree?: Described;
}

interface Open {
  readonly ticket: string;
  readonly domain: string;
  readonly sources: TreeSource[];
  readonly cut: AbortController;
  /** Directories that go with the offer. */
  readonly own: string[];
  /** Ends the hold of the snapshot's disk. */
  release: () => void;
  usedAt: number;
  done: { doneBytes: number; totalBytes: number };
  /** Id or name of the image, once it is known. */
  image: string | undefined;
  whole?: Work;
  imageTree?: Work;
}

export function createOffers(deps: OffersDeps): Offers {
  const { blobs, containers, files, snapshots, now, log, waitMs = WAIT_MS } = deps;
  const offers = new Map<string, Open>();
  const serving = createSemaphore(SERVED_AT_ONCE);
  /** Docker writes one image at a time, so that several do not fill the disk at once. */
  const unpacking = createSemaphore(1);
  let sweeps: Loop | undefined;
  /** The sweeps go on for the life of the agent: not in the trace of the request that opens the first offer. */
  const outside = AsyncLocalStorage.snapshot();

  const uploadDeps = ({ domain }: Open): UploadDeps => ({
    store: undefined,
    codec: blobs.codec(domain),
    extents: blobs.extents,
    transfers: blobs.transfers,
    now,
  });

  const serve = (offer: Open, name: string, { ref, root, manifest }: Described) =>
    offer.sources.push(treeSource(blobs.codec(offer.domain), { name, ref, root, manifest }));

  function work(key: string, offer: Open, run: () => Promise<Described>): Work {
    const own: Work = {
      ended: run().then(
        (tree) => {
          own.tree = tree;
          return tree;
        },
        (error: unknown) => {
          own.failure = error instanceof Error ? error : new Error(String(error));
          if (!offer.cut.signal.aborted) log.warn({ err: error, offer: key }, "could not describe it for other nodes");
          return undefined;
        },
      ),
    };
    return own;
  }

  async function close(key: string): Promise<void> {
    const offer = offers.get(key);
    if (offer === undefined) return;
    offers.delete(key);
    offer.cut.abort(new AppError("unavailable", "the offer has ended"));
    offer.release();
    await Promise.all([offer.whole?.ended, offer.imageTree?.ended]);
    for (const directory of offer.own) await rm(directory, { recursive: true, force: true });
  }

  /** Makes room for another offer. Whoever still reads the old one asks for it anew. */
  function giveUpOldest(): void {
    const [oldest] = [...offers].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest === undefined || now() - oldest[1].usedAt < IDLE_MS)
      throw new AppError(
        "unavailable",
        `this node offers ${MOST_OFFERS} things to other nodes already: ask again later`,
      );
    closeSoon(oldest[0]);
  }

  function closeSoon(key: string): void {
    close(key).catch((error: unknown) => log.warn({ err: error }, "could not tidy up after an offer"));
  }

  function open(key: string, domain: string, image?: string): Open {
    const known = offers.get(key);
    if (known !== undefined) {
      known.usedAt = now();
      return known;
    }
    if (offers.size >= MOST_OFFERS) giveUpOldest();
    const offer: Open = {
      ticket: randomBytes(32).toString("hex"),
      domain,
      sources: [],
      cut: new AbortController(),
      own: [],
      release: () => undefined,
      usedAt: now(),
      done: { doneBytes: 0, totalBytes: 0 },
      image,
    };
    offers.set(key, offer);
    sweeps ??= outside(() => loop({ name: "offers", everyMs: SWEEP_EVERY_MS, log }, sweep));
    return offer;
  }

  async function sweep(): Promise<void> {
    for (const [each, { usedAt, release }] of offers) {
      if (now() - usedAt > IDLE_MS) release();
      if (now() - usedAt > KEPT_MS) await close(each);
    }
  }

  async function describe(offer: Open, snapshot: Snapshot): Promise<Described> {
    const { signal } = offer.cut;
    const begun = now();
    const disk = await holdDisk(snapshot, deps);
    offer.release = disk.release;
    // The offer may have ended meanwhile.
    if (signal.aborted) disk.release();
    signal.throwIfAborted();
    offer.image = disk.image;
    const progress = ({ doneBytes, totalBytes }: Open["done"]) => {
      offer.done = { doneBytes, totalBytes };
    };
    const upload = uploadDeps(offer);
    const trees = await describeSnapshot(snapshot, { disk, begun }, { upload, files }, { signal, progress });
    serve(offer, `the disk of ${snapshot.id}`, trees.disk);
    serve(offer, `the memory of ${snapshot.id}`, trees.whole);
    const tookMs = now() - begun;
    log.info({ snapshotId: snapshot.id, tookMs }, "described a snapshot for other nodes");
    return trees.whole;
  }

  async function describeImage(offer: Open, image: string): Promise<Described> {
    const { signal } = offer.cut;
    const release = await unpacking.take(signal);
    try {
      const root = await unpackImage(image, { containers, work: blobs.work }, signal);
      offer.own.push(root);
      const described = await uploadTree(uploadDeps(offer), { root, kind: "tree" }, signal);
      const tree = { ...described, root };
      serve(offer, `the image ${image}`, tree);
      return tree;
    } finally {
      release();
    }
  }

  async function answer(key: string, offer: Open, own: Work): Promise<Offer> {
    const patience = new AbortController();
    await Promise.race([own.ended, delay(waitMs, undefined, { signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
    if (own.failure !== undefined) {
      // The next request tries again.
      await close(key);
      throw toAppError(own.failure);
    }
    return {
      ticket: offer.ticket,
      projectId: offer.domain,
      ...offer.done,
      ...(own.tree === undefined ? {} : { ref: own.tree.ref }),
    };
  }

  function opened(ticket: string): readonly [key: string, offer: Open] {
    const found = [...offers].find(([, { ticket: own, usedAt }]) => {
      return now() - usedAt <= KEPT_MS && sameSecret(own, ticket);
    });
    if (found === undefined) throw new AppError("unauthorized", "this node has no offer with that ticket (any more)");
    found[1].usedAt = now();
    return found;
  }

  return {
    async snapshot(snapshotId) {
      const snapshot = snapshots.get(snapshotId);
      if (snapshot === undefined || snapshot.state === "spent")
        throw new AppError("snapshot_files_missing", `this node does not have snapshot ${snapshotId}`);
      if (snapshot.state !== "stored" || snapshot.resuming)
        throw new AppError("conflict", `snapshot ${snapshotId} is being written or resumed`);
      if (snapshot.projectId === undefined)
        throw new AppError(
          "failed_precondition",
          `snapshot ${snapshotId} stays on this node: an earlier version took it without a project`,
        );
      // A snapshot that was taken again under its id is another one.
      const key = `snapshot ${snapshotId} ${snapshot.takenAt}`;
      const offer = open(key, snapshot.projectId);
      offer.whole ??= work(key, offer, () => describe(offer, snapshot));
      return answer(key, offer, offer.whole);
    },
    async image(image, domain) {
      if ((await containers.image(image)) === undefined)
        throw new AppError("not_found", `this node does not have the image ${image}`);
      const key = `image ${domain} ${image}`;
      const offer = open(key, domain, image);
      offer.imageTree ??= work(key, offer, () => describeImage(offer, image));
      return answer(key, offer, offer.imageTree);
    },
    async forget(snapshotId) {
      for (const key of offers.keys()) if (key.startsWith(`snapshot ${snapshotId} `)) await close(key);
    },
    isInUse(snapshotId) {
      const prefix = `snapshot ${snapshotId} `;
      return [...offers].some(([key, { usedAt }]) => key.startsWith(prefix) && now() - usedAt <= IDLE_MS);
    },
    async read(ticket, ref, signal, packing) {
      const [key, offer] = opened(ticket);
      const release = await serving.take(signal);
      try {
        for (const source of offer.sources) {
          const stored = await source.get(ref, signal, packing);
          if (stored === undefined) continue;
          blobs.traffic.add("to_nodes", stored.length);
          return stored;
        }
        return undefined;
      } catch (error) {
        // The node describes the disk again at the next request.
        if (error instanceof BlobError && error.fault === "changed") closeSoon(key);
        throw error;
      } finally {
        release();
      }
    },
    async imageOf(ticket) {
      const [key, offer] = opened(ticket);
      const { image } = offer;
      if (image === undefined) return { ref: undefined };
      offer.imageTree ??= work(key, offer, () => describeImage(offer, image));
      const { ref } = await answer(key, offer, offer.imageTree);
      return { ref };
    },
    async stop() {
      await sweeps?.stop();
      await Promise.all([...offers.keys()].map(close));
    },
  };
}

function toAppError(error: Error): AppError {
  if (!(error instanceof BlobError)) return AppError.from(error);
  const code = error.fault === "changed" ? "failed_precondition" : error.fault === "full" ? "no_space" : "unavailable";
  return new AppError(code, error.message, { cause: error });
}
