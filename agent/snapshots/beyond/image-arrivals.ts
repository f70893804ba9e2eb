/**
 * Images of templates on their way to this node from another one or the blob store: the node fetches each once. A copy that no
 * container uses is removed a day after it came; the next start that needs it fetches it again.
 */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Arrival, FetchImageBody, Peer } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import { downloadTree, fetchManifest } from "../../blobs/download.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import type { OpenPeer } from "../../blobs/peer.ts";
import { type BlobSource, createReader, storeSource } from "../../blobs/sources.ts";
import { dataBytes } from "../../blobs/trees/manifest.ts";
import type { Containers } from "../../containers/containers.ts";
import type { DiskReserve } from "../../node-disk/reserve.ts";
import type { CopyStore } from "../../store/beyond/copies.ts";
import type { BuildStore } from "../../store/builds.ts";
import { toAppError } from "./arrivals.ts";
import { tarred } from "./tar.ts";

/** An answer waits so long for the end, so that small images need one request. */
const WAIT_MS = 5_000;
const KEPT_MS = 24 * 3_600_000;
const SWEEP_EVERY_MS = 600_000;

export interface ImageArrivalsDeps {
  readonly blobs: Pick<Blobs, "codec" | "transfers" | "work">;
  readonly containers: Pick<Containers, "image" | "load" | "untag">;
  readonly store: Pick<ClaimedStore, "use">;
  readonly stores: { readonly copies: CopyStore; readonly builds: Pick<BuildStore, "all"> };
  readonly disk: Pick<DiskReserve, "storageRefusal">;
  readonly peer: (place: Peer) => OpenPeer;
  /** An image has come or gone. */
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Log;
  /** For tests. */
  readonly waitMs?: number;
}

export interface ImageArrivals {
  /** Begins or joins; answers how far it is. @throws {AppError} why it cannot be here */
  fetch(wanted: FetchImageBody): Promise<Arrival>;
  /** Removes copies that came a day ago and that no container uses. */
  sweep(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

export function createImageArrivals(deps: ImageArrivalsDeps): ImageArrivals {
  const { blobs, containers, disk, now, log, waitMs = WAIT_MS } = deps;
  const { copies, builds } = deps.stores;
  const stopping = new AbortController();
  const underWay = new Map<string, { readonly ended: Promise<void>; done: Omit<Arrival, "here"> }>();
  let sweeps: Loop | undefined;

  const isHere = async (image: string) => (await containers.image(image)) !== undefined;

  async function bring(wanted: FetchImageBody, entry: { done: Omit<Arrival, "here"> }): Promise<void> {
    const { peer: place } = wanted;
    if (place === undefined) return load(wanted, storeSource(deps.store.use()), entry);
    const peer = deps.peer(place);
    try {
      await load(wanted, peer.source, entry);
    } finally {
      await peer.close();
    }
  }

  async function load(
    { image, ref, projectId }: FetchImageBody,
    source: BlobSource,
    entry: { done: Omit<Arrival, "here"> },
  ): Promise<void> {
    const { signal } = stopping;
    await mkdir(blobs.work, { recursive: true, mode: 0o700 });
    const work = await mkdtemp(join(blobs.work, "image-"));
    try {
      const reader = createReader({ sources: [source], codec: blobs.codec(projectId), now });
      const manifest = await fetchManifest(reader, ref, signal);
      const bytes = dataBytes(manifest);
      // Once as files on their way, and once in Docker.
      const refused = await disk.storageRefusal({ snapshots: bytes, sandboxes: bytes });
      if (refused !== undefined) throw refused;
      const to = join(work, "image");
      const progress = ({ doneBytes, totalBytes }: Omit<Arrival, "here">) => {
        entry.done = { doneBytes, totalBytes };
      };
      await downloadTree({ reader, transfers: blobs.transfers }, { manifest, to, progress }, signal);
      copies.add(image, now());
      await tarred(to, (archive) => containers.load(archive, signal), signal);
      if (!(await isHere(image)))
        throw new BlobError("damaged", `what ${source.name} has under ${ref} is not the image ${image}`);
      log.info({ image, bytes, from: source.name }, "fetched the image of a template");
      deps.onChange();
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  function begin(wanted: FetchImageBody) {
    const { image } = wanted;
    const entry = { done: { doneBytes: 0, totalBytes: 0 }, ended: Promise.resolve() };
    // Everything that asks within this turn joins.
    entry.ended = Promise.resolve()
      .then(() => bring(wanted, entry))
      .finally(() => underWay.delete(image));
    // Whoever waits is told; when nobody does any more, the next request tries again.
    entry.ended.catch(() => undefined);
    underWay.set(image, entry);
    return entry;
  }

  async function sweep(): Promise<void> {
    const own = new Set(builds.all().flatMap(({ state, result }) => (state === "ready" ? [result?.image] : [])));
    for (const image of copies.before(now() - KEPT_MS)) {
      // Docker had lost it, and it came back: it is as this node has built it.
      if (own.has(image)) {
        copies.remove(image);
        continue;
      }
      if (!(await containers.untag(image))) continue;
      copies.remove(image);
      deps.onChange();
      log.info({ image }, "removed an image that another node has built, which no container uses");
    }
  }

  return {
    async fetch(wanted) {
      if (!underWay.has(wanted.image) && (await isHere(wanted.image)))
        return { here: true, doneBytes: 0, totalBytes: 0 };
      const own = underWay.get(wanted.image) ?? begin(wanted);
      const patience = new AbortController();
      try {
        await Promise.race([own.ended, delay(waitMs, undefined, { signal: patience.signal })]);
      } catch (error) {
        throw toAppError(`image ${wanted.image}`, error);
      } finally {
        patience.abort();
      }
      return { here: !underWay.has(wanted.image) && (await isHere(wanted.image)), ...own.done };
    },
    sweep,
    start() {
      sweeps ??= loop({ name: "copies of images", everyMs: SWEEP_EVERY_MS, log }, sweep);
    },
    async stop() {
      stopping.abort(new AppError("unavailable", "the agent stops"));
      await sweeps?.stop();
      await Promise.allSettled([...underWay.values()].map(({ ended }) => ended));
    },
  };
}
