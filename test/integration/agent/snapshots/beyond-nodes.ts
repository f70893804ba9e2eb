/** Nodes with a directory as their blob store: the files and rows of their snapshots are real, their Docker is the test's own. */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import type { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { createReader, storeSource } from "../../../../agent/blobs/sources.ts";
import { directoryStore } from "../../../../agent/blobs/stores/directory.ts";
import { createTraffic } from "../../../../agent/blobs/traffic.ts";
import type { DiskOwner } from "../../../../agent/containers/containers.ts";
import type { Origins } from "../../../../agent/host/origins.ts";
import { createImageTrees } from "../../../../agent/snapshots/beyond/image-trees.ts";
import { untar } from "../../../../agent/snapshots/beyond/tar.ts";
import { uploadSnapshot } from "../../../../agent/snapshots/beyond/upload-snapshot.ts";
import { snapshotFiles } from "../../../../agent/snapshots/store/files.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { ENVD_VERSION } from "../../../../shared/version.ts";
import { fakeImage } from "../../../support/fakes/fake-builds.ts";
import { testSeal } from "../../../support/store/test-seal.ts";
import { uploading } from "../blobs/trees.ts";

const PROJECT = "project";
export const IMAGE = "sha256:base";

export const origins: Omit<Origins, "envd"> = {
  kernel: "6.1.0",
  architecture: "x86_64",
  cpuFlags: "sse2 avx2",
  criu: "4.2",
  runc: "1.1",
};

const log = createLog({ component: "test", level: "silent" });

/** A directory of the test, with an empty one in it that nodes share. */
export async function newPlace(): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), "svc-beyond-"));
  onTestFinished(() => rm(place, { recursive: true }));
  await mkdir(join(place, "share"));
  return place;
}

export type BeyondNode = Awaited<ReturnType<typeof newNode>>;

/** A node of its own below the place. Its clock stands still until the test moves it. */
export async function newNode(place: string, name: string) {
  const own = join(place, name);
  for (const part of ["snapshots", "disks", "image"]) await mkdir(join(own, part), { recursive: true });
  const stores = openStores(":memory:", testSeal);
  onTestFinished(() => stores.close());
  const { deps, clock } = uploading(undefined);
  const share = directoryStore(join(place, "share"));
  const state = {
    /** Times that an image was read out of Docker, and into it. */
    saved: 0,
    loaded: 0,
    images: new Set<string>(),
    below: new Map<string, string>(),
    runtimes: new Set(["/runtime/1"]),
    away: undefined as BlobError | undefined,
    ownDisks: true,
    refusal: undefined as AppError | undefined,
    beforeDisk: () => Promise.resolve(),
    beforeLoad: () => Promise.resolve(),
    /** Snapshots whose containers must not be dropped now. */
    holds: [] as string[],
  };
  const diskOf = (of: DiskOwner) => {
    const id = "image" in of ? of.image.replace("svc/snapshot:", "") : of.containerId.slice(1);
    return join(own, "disks", `${id}.img`);
  };
  const containers = {
    async diskFile(of: DiskOwner) {
      await state.beforeDisk();
      const path = diskOf(of);
      return state.ownDisks && existsSync(path) ? { path, image: IMAGE } : undefined;
    },
    diskPlace: (of: DiskOwner) => Promise.resolve(state.ownDisks ? diskOf(of) : undefined),
    keepBelow(below: string, image: string) {
      state.below.set(image, below);
      return Promise.resolve();
    },
    image: (id: string) => Promise.resolve(state.images.has(id) ? { ...fakeImage(id), names: [] } : undefined),
    async load(archive: Readable, signal: AbortSignal) {
      await state.beforeLoad();
      state.loaded++;
      await untar(archive, join(own, "image"), signal);
      state.images.add(IMAGE);
    },
    save() {
      state.saved++;
      return Promise.resolve(
        Readable.from([execFileSync("tar", ["--create", "--file=-", "-C", join(own, "image"), "."])]),
      );
    },
    removeImage(image: string) {
      state.below.delete(image);
      return Promise.resolve(true);
    },
  };
  const docker = {
    containers,
    runtime: (directory = "/runtime/1") =>
      state.runtimes.has(directory)
        ? Promise.resolve({ directory, command: [] })
        : Promise.reject(new AppError("unavailable", "the envd runtime directory is missing")),
  };
  const now = () => clock.now;
  const files = snapshotFiles(join(own, "snapshots"));
  const work = join(own, "work");
  const traffic = createTraffic();
  const blobs = { codec: () => deps.codec, extents: deps.extents, transfers: deps.transfers, traffic, work };
  const frozen = {
    hold(snapshotId: string) {
      state.holds.push(snapshotId);
      return Promise.resolve(() => void (state.holds = state.holds.filter((id) => id !== snapshotId)));
    },
  };
  const upload = { blobs, images: createImageTrees({ containers, work }), containers, files, frozen, now };
  const disk = { storageRefusal: () => Promise.resolve(state.refusal) };
  const here = { ...origins };
  return {
    own,
    clock,
    share,
    state,
    stores,
    files,
    frozen,
    traffic,
    /** This machine, which the test may change. */
    here,
    reader: createReader({ sources: [storeSource(share)], codec: deps.codec, now }),
    upload,
    fetching: { blobs, docker, files, stores, disk, origins: () => here, now, log },
    uploadNow: (snapshot: Snapshot) =>
      uploadSnapshot(snapshot, share, upload, { signal: new AbortController().signal, progress: () => undefined }),
    store: {
      name: share.name,
      use() {
        if (state.away !== undefined) throw state.away;
        return share;
      },
    },
  };
}

/** A snapshot as a pause or checkpoint leaves it on a node: its row, its memory and its disk. */
export async function storedOn(
  { own, stores, state }: BeyondNode,
  id: string,
  kind: Snapshot["kind"],
  { takenAt = 0, boot }: { readonly takenAt?: number; readonly boot?: string } = {},
): Promise<Snapshot> {
  const image = kind === "checkpoint" ? `svc/snapshot:${id}` : undefined;
  const build = { templateId: "t", buildId: "b", image: "svc/base" };
  const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 64 };
  const subject = { sandboxId: `s${id}`, executionId: `e${id}`, kind, memory: true };
  const container = { containerId: `c${id}`, controlToken: "control", runtime: "/runtime/1", build, resources };
  const sizes = { memoryBytes: 3, diskBytes: 4, takenAt };
  stores.snapshots.intend({
    ...subject,
    id,
    state: "taking",
    projectId: PROJECT,
    disk: { ...container, upperDirectory: undefined, createdAt: 1 },
    image,
    ...sizes,
    record: "the orchestrator's row",
  });
  const directory = join(own, "snapshots", id);
  await mkdir(join(directory, "images"), { recursive: true });
  await writeFile(join(directory, "images", "pages-1.img"), `memory of ${id}`);
  const made = { ...origins, envd: ENVD_VERSION };
  const manifest = {
    ...subject,
    ...container,
    format: 1,
    snapshotId: id,
    origins: made,
    createdAt: 5,
    boot,
    files: [],
  };
  await writeFile(join(directory, "manifest.json"), JSON.stringify({ ...manifest, memoryBytes: 3, diskBytes: 4 }));
  await writeFile(join(own, "disks", `${id}.img`), `disk of ${id}`);
  await writeFile(join(own, "image", "layer.tar"), "the layer of the image");
  state.images.add(IMAGE);
  stores.snapshots.keep(id, sizes, () => undefined);
  const row = stores.snapshots.get(id);
  if (row === undefined) throw new Error("the test's own snapshot is missing");
  return row;
}
