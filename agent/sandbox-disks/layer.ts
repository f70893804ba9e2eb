/** The layer of a container on its disk: Docker's own files of it, what programs wrote (`diff`), and the image below. */

import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import type { RunCommand } from "../host/command.ts";

/** Beside the layer, where no program inside sees it. */
const IMAGE = "image";
/** Docker's names of the layers below, the container's own first layer (its hosts and resolv.conf) before those of the image. */
const LOWER = "lower";

interface Layer {
  /** Docker's directory of the layer: it becomes a link to `own`. */
  readonly layer: string;
  readonly own: string;
  readonly image: string | undefined;
  /** Whether the disk has a layer of another container, of which only what programs wrote stays. */
  readonly keep: boolean;
}

/** Where the layer of a container is below the mount point of its disk. */
export const LAYER = "layer";
/** What programs wrote, in the layer. */
const WRITTEN = "diff";

/**
 * Where `svc-runc` mounts files over the kernel's. A restore makes what is missing of them in the root before it mounts `/proc` and
 * `/sys`, and on a full disk it could not.
 */
const MOUNT_POINTS = [
  ...["meminfo", "cpuinfo", "stat", "uptime", "loadavg", "swaps"].map((name) => `proc/${name}`),
  "sys/devices/system/cpu/online",
];

/** Whether a container's upper directory, as the engine with disks reports it, is on a disk of its own. */
export function isOwnLayer(upperDirectory: string, containerId: string): boolean {
  return upperDirectory.endsWith(join("/", containerId, LAYER, WRITTEN));
}

export async function putLayer({ layer, own, image, keep }: Layer, run: RunCommand): Promise<void> {
  await mkdir(own, { recursive: true, mode: 0o710 });
  for (const name of ["work", "merged"]) await rm(join(own, name), { recursive: true, force: true });
  const names = (await readdir(layer)).filter((name) => !keep || name !== WRITTEN);
  await run("cp", ["--archive", "--", ...names.map((name) => join(layer, name)), own]);
  if (!keep) await putMountPoints(join(own, WRITTEN));
  if (image !== undefined) await writeFile(imageFile(own), image, { mode: 0o600 });
  await rm(layer, { recursive: true });
  await symlink(own, layer);
}

/** Nothing has run in the container, so no link leads out of its layer. */
async function putMountPoints(written: string): Promise<void> {
  for (const path of MOUNT_POINTS) {
    await mkdir(join(written, dirname(path)), { recursive: true, mode: 0o555 });
    await writeFile(join(written, path), "", { flag: "a", mode: 0o444 });
  }
}

export async function imageOfLayer(own: string): Promise<string | undefined> {
  const image = await readFile(imageFile(own), "utf8").catch(() => "");
  return image === "" ? undefined : image;
}

/**
 * For disks that do not name their image: what programs wrote fits only the image that was below it.
 * @throws {AppError} no_compatible_node
 */
export async function checkLower(own: string, layer: string): Promise<void> {
  if ((await imageOfLayer(own)) !== undefined) return;
  const [before, now] = await Promise.all([own, layer].map(imageLayers));
  if (before === now) return;
  throw new AppError(
    "no_compatible_node",
    "the sandbox's container was removed from Docker, and so was the image that its disk stands on; its disk and memory are " +
      "kept: the operator loads the image into the node's Docker again (docker load), or kills the sandbox",
  );
}

async function imageLayers(directory: string): Promise<string> {
  const [, ...ofImage] = (await readFile(join(directory, LOWER), "utf8")).trim().split(":");
  return ofImage.join(":");
}

const imageFile = (own: string) => join(dirname(own), IMAGE);
