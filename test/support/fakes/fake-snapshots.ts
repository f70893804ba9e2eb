/** Memory images of the machine in memory: each has a name and a manifest. */

import type { Containers } from "../../../agent/containers/containers.ts";
import { NO_OWN_DISKS } from "../../../agent/containers/no-own-disks.ts";
import type { Connections } from "../../../agent/snapshots/connections/connections.ts";
import type { Criu } from "../../../agent/snapshots/criu/criu.ts";
import type { SnapshotFiles } from "../../../agent/snapshots/store/files.ts";
import { type Manifest, missing } from "../../../agent/snapshots/store/manifest.ts";
import type { Memory } from "../../../agent/snapshots/take/host-memory.ts";

type EngineImages = Pick<
  Containers,
  "commit" | "layers" | "layerDirectories" | "flatten" | "removeImage" | "snapshotImages" | keyof typeof NO_OWN_DISKS
>;

/** `images` are the directories that hold a memory image; their content outlives the agent. */
export function fakeSnapshots(
  step: (name: string) => Promise<void>,
  images: Set<string>,
): { memory: Memory; images: EngineImages } {
  const stored = new Map<string, Manifest>();
  const drafts = new Set<string>();
  const directory = (id: string) => `/snapshots/${id}/images`;
  const draftDirectory = (id: string) => `/snapshots/.${id}`;
  const files: SnapshotFiles = {
    async draft(id) {
      await step("draft");
      drafts.add(id);
      const at = draftDirectory(id);
      return {
        images: at,
        work: at,
        async finish(toManifest) {
          await step("sync");
          const manifest = toManifest([]);
          if (images.delete(at)) images.add(directory(id));
          drafts.delete(id);
          stored.set(id, manifest);
          await step("durable");
          return manifest;
        },
        discard: () => files.remove(id),
      };
    },
    directory: (id) => `/snapshots/${id}`,
    images: directory,
    async manifest(id) {
      const manifest = stored.get(id);
      if (manifest === undefined) throw missing("its manifest is gone");
      return Promise.resolve(manifest);
    },
    untouched: () => Promise.resolve(true),
    keepTimes: () => Promise.resolve(),
    verify: () => step("verify"),
    check: () => Promise.resolve([]),
    async remove(id) {
      await step("remove images");
      drafts.delete(id);
      stored.delete(id);
      images.delete(directory(id));
      images.delete(draftDirectory(id));
    },
    list: () => Promise.resolve({ stored: [...stored.keys()], unfinished: [...drafts] }),
    links: () => Promise.resolve(undefined),
    changedAt: () => Promise.resolve(0),
    draftDirectory,
  };
  const criu: Criu = {
    async dump(_id, to) {
      await step("dump");
      images.add(to.images);
    },
    wipeOnRestore: () => Promise.resolve(),
    servePages: () => Promise.reject(new Error("nothing is large here")),
    findPageServer: () => Promise.resolve(undefined),
    endRestore: () => Promise.resolve(),
    removeLinks: () => Promise.resolve(),
    settled: () => step("settled"),
  };
  const connections: Connections = {
    async closeInImages(_images, { address }) {
      await step("close connections");
      return { addresses: [address], connections: true };
    },
    async prepare(_slot, { addresses }) {
      await step("prepare connections");
      await step(`addresses ${addresses.join()}`);
    },
    release: () => step("release connections"),
    areOutside: () => Promise.resolve(true),
    endOutside: () => step("end connections"),
    mend: () => step("mend connections"),
  };
  const built = new Set<string>();
  const engineImages: EngineImages = {
    ...NO_OWN_DISKS,
    async commit(_id, image) {
      await step("commit");
      built.add(image);
    },
    layers: () => Promise.resolve(3),
    layerDirectories: () => Promise.resolve([]),
    flatten: () => step("flatten"),
    async removeImage(image) {
      await step("remove image");
      built.delete(image);
      return true;
    },
    snapshotImages: () => Promise.resolve([]),
  };
  const watchedPaths = { note: () => Promise.resolve() };
  return { memory: { files, criu, connections, watchedPaths }, images: engineImages };
}
