/**
 * A container engine whose containers have a disk of their own. The image of a snapshot is then a name for a stored disk:
 * a container that is created from that image gets a copy of the disk, on the image that the snapshot's source was made of.
 */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { ContainerSpec, Containers } from "../containers/containers.ts";
import type { ImageNames } from "../containers/docker-images.ts";
import type { Disks, DiskUse } from "./disks.ts";
import { layerOf, successor } from "./successor.ts";

/** Size of the disk of a template that names none. */
const DEFAULT_MB = 10_240;
/** A container whose disk cannot be mounted does not run. Its start gives the reason. */
const WITHOUT_DISK = { running: false, pid: 0, exitCode: 137, oomKilled: false, upperDirectory: undefined, cpus: "" };
/** A copy of a larger disk would take long beside the dump for which its source stands still. */
const MOST_AHEAD = 64 * 1024 * 1024;
const SNAPSHOT = /^svc\/snapshot:(.+)$/;

interface WithDisksDeps {
  readonly engine: Containers & ImageNames;
  readonly disks: Disks;
  /** Of the names that keep the images below stored disks. No other node of the Docker daemon uses it. */
  readonly repository: string;
  readonly now: () => number;
  readonly log: Log;
}

export function withDisks({ engine, disks, repository, now, log }: WithDisksDeps): Containers {
  const below = (id: string) => `${repository}:${id}`;
  const storedIn = (image: string): string | undefined => {
    const id = SNAPSHOT.exec(image)?.[1];
    return id !== undefined && disks.hasStored(id) ? id : undefined;
  };
  const onWhat = (image: string) => {
    const id = storedIn(image);
    return id === undefined ? image : below(id);
  };
  const usable = async () =>
    (await disks.unusable()) === undefined && (await engine.facts()).storageDriver === "overlay2";

  /** Containers that were made ahead and have their disk. */
  const furnished = new Set<string>();
  const makeDisk = async (containerId: string, { resources }: Pick<ContainerSpec, "resources">, from?: string) => {
    const sizeMb = resources.diskSizeMB || DEFAULT_MB;
    await disks.make({ containerId, ...(await layerOf(containerId, engine)), sizeMb, from });
  };

  const firstSeen = new Map<string, number>();
  const suspects = new Set<string>();

  const removeStranger = async (id: string) => {
    try {
      if ((await engine.inspect(id)) !== undefined) return;
      await disks.remove(id);
      log.warn({ containerId: id }, "removed the disk of a container that is gone");
    } catch (error) {
      log.warn({ err: error, containerId: id }, "could not remove the disk of a container that is gone");
    }
  };

  const removeSnapshot = async (id: string): Promise<boolean> => {
    await disks.removeStored(id);
    return engine.untag(below(id));
  };

  return {
    ...engine,

    async create({ takeOver, made, ...spec }) {
      if (takeOver !== undefined) return successor(spec, takeOver, { engine, disks, onWhat });
      const from = storedIn(spec.build.image);
      // What was made ahead is of the image below the disk, and would get an empty one.
      if (made !== undefined && from === undefined)
        throw new AppError("snapshot_files_missing", "the stored disk of the sandbox's snapshot is gone");
      if (!(await usable())) {
        if (from === undefined) return engine.create(spec);
        throw new AppError("unavailable", "this node cannot make the sandbox's disk now: try again");
      }
      if (made !== undefined && furnished.delete(made)) return made;
      const containerId =
        made ?? (await engine.create({ ...spec, build: { ...spec.build, image: onWhat(spec.build.image) } }));
      try {
        await makeDisk(containerId, spec, from);
        return containerId;
      } catch (cause) {
        await Promise.allSettled([engine.remove(containerId), disks.remove(containerId)]);
        if (cause instanceof AppError) throw cause;
        throw new AppError("sandbox_create_failed", "the sandbox's disk could not be made", { cause });
      }
    },

    async createAhead(spec) {
      const id = SNAPSHOT.exec(spec.build.image)?.[1];
      if (id === undefined || !(await usable())) return undefined;
      return engine.create({ ...spec, build: { ...spec.build, image: below(id) } });
    },

    async furnishAhead(id, spec) {
      const from = SNAPSHOT.exec(spec.build.image)?.[1];
      if (from === undefined || (await disks.storedBytes(from)) > MOST_AHEAD) return false;
      await makeDisk(id, spec, from);
      furnished.add(id);
      return true;
    },

    async start(id) {
      if (!disks.has(id)) return engine.start(id);
      await disks.mount(id);
      await disks.lending(id, () => engine.start(id));
    },

    async inspect(id) {
      if (!disks.has(id)) return engine.inspect(id);
      try {
        // Docker describes no container whose layer it cannot see.
        await disks.mount(id);
      } catch (error) {
        log.warn({ err: error, containerId: id }, "could not mount the disk of a container");
        return WITHOUT_DISK;
      }
      const found = await engine.inspect(id);
      return found === undefined ? undefined : { ...found, upperDirectory: `${disks.layer(id)}/diff` };
    },

    async remove(id) {
      furnished.delete(id);
      // Docker removes a name of its own that it finds on the disk.
      if (disks.has(id)) await disks.mount(id).catch(() => undefined);
      await engine.remove(id);
      await disks.remove(id);
    },

    hasOwnDisk: (id) => disks.has(id),

    async copyAhead(id, image) {
      const snapshotId = SNAPSHOT.exec(image)?.[1];
      if (snapshotId === undefined || !disks.has(id)) return;
      const works = [engine.tagImageOf(id, below(snapshotId)), disks.copyAhead(id, snapshotId)];
      // The caller undoes both, so a failure waits for the other.
      await Promise.allSettled(works);
      await Promise.all(works);
    },

    commit: (id, image, snapshotId) =>
      disks.has(id) ? disks.store(id, snapshotId) : engine.commit(id, image, snapshotId),

    async keep(containerId, image, durable) {
      const id = SNAPSHOT.exec(image)?.[1];
      if (id === undefined || !disks.has(containerId)) return;
      if (disks.hasDraft(id)) await disks.keep(id, durable);
      else if (!disks.hasStored(id)) throw new AppError("snapshot_failed", "the copy of the sandbox's disk is gone");
    },

    async flushDisk(id) {
      if (disks.has(id)) await disks.flush(id);
    },

    async keepImageBelow(id, image) {
      const snapshotId = SNAPSHOT.exec(image)?.[1];
      if (snapshotId !== undefined && disks.has(id)) await engine.tagImageOf(id, below(snapshotId));
    },

    async diskFile(of) {
      if ("image" in of) {
        const id = storedIn(of.image);
        const image = id === undefined ? undefined : (await engine.image(below(id)))?.id;
        return id === undefined || image === undefined ? undefined : { path: disks.file({ stored: id }), image };
      }
      const { containerId } = of;
      if (!disks.has(containerId)) return undefined;
      // This mounts the disk, which writes to it.
      const image = (await disks.imageOf(containerId)) ?? (await engine.inspect(containerId))?.image;
      await disks.flush(containerId);
      return image === undefined ? undefined : { path: disks.file({ containerId }), image };
    },

    async diskPlace(of) {
      if (!(await usable())) return undefined;
      if ("containerId" in of) return disks.file(of);
      const id = SNAPSHOT.exec(of.image)?.[1];
      return id === undefined ? undefined : disks.file({ stored: id });
    },

    async keepBelow(imageId, image) {
      const id = SNAPSHOT.exec(image)?.[1];
      if (id !== undefined) await engine.tag(imageId, below(id));
    },

    thawDisk: (id) => disks.thaw(id),

    async facts() {
      const facts = await engine.facts();
      const reason = await disks.unusable();
      if (facts.storageDriver !== "overlay2" || reason !== undefined) {
        const why = reason ?? `the storage driver is ${facts.storageDriver}, not overlay2`;
        return { ...facts, diskDetail: `${facts.diskDetail}; sandboxes have no disk image of their own: ${why}` };
      }
      return {
        ...facts,
        diskLimit: true,
        diskDetail: "a disk image of its own for each sandbox",
        writableRoot: disks.root,
      };
    },

    layers: async (image) => (storedIn(image) === undefined ? engine.layers(image) : 1),
    image: async (name) => {
      const found = await engine.image(onWhat(name));
      return found === undefined || storedIn(name) === undefined ? found : { ...found, names: [name] };
    },

    async removeImage(image) {
      const id = SNAPSHOT.exec(image)?.[1];
      const removed = id === undefined ? true : await removeSnapshot(id);
      return (await engine.removeImage(image)) && removed;
    },

    async snapshotImages() {
      const [tags, { stored }] = await Promise.all([engine.tagsOf(repository), disks.list()]);
      // Read last: an image that has got one of these names meanwhile is the base of a stored disk, whatever its label.
      const images = await engine.snapshotImages();
      for (const id of firstSeen.keys()) if (!tags.includes(id)) firstSeen.delete(id);
      for (const id of tags) firstSeen.set(id, firstSeen.get(id) ?? now());
      const dates = new Map(firstSeen);
      for (const { id, changedAt } of stored) dates.set(id, changedAt);
      const own = [...dates].map(([id, createdAt]) => ({ id: `svc/snapshot:${id}`, snapshotId: id, createdAt }));
      return [...images.filter(({ names }) => !names?.some((name) => name.startsWith(`${repository}:`))), ...own];
    },

    disks: async () => (await disks.list()).containerIds,

    async removeOrphans(owned) {
      const { containerIds } = await disks.list();
      const found = new Set((await engine.list()).map(({ id }) => id));
      const orphans = containerIds.filter((id) => !found.has(id) && !owned.has(id));
      for (const id of suspects) if (!orphans.includes(id)) suspects.delete(id);
      for (const id of orphans) {
        // A disk counts as one without a container when two rounds say so, and Docker does not know this container.
        if (!suspects.has(id)) suspects.add(id);
        else await removeStranger(id);
      }
    },
  };
}

/** Measures a directory by its disk's own counters where the directory is on one, and otherwise by a walk. */
export function ofOwnDisks(
  disks: Pick<Disks, "root" | "use">,
  take: (use: DiskUse) => number,
  walk: (directory: string) => Promise<number | undefined>,
): (directory: string) => Promise<number | undefined> {
  return async (directory) => {
    if (!directory.startsWith(`${disks.root}/`)) return walk(directory);
    const [containerId = ""] = directory.slice(disks.root.length + 1).split("/");
    const use = disks.use(containerId);
    return use === undefined ? undefined : take(use);
  };
}
