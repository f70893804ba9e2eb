/** Creates the container that takes over the disk of one that Docker has lost, for example to `docker container prune`. */

import { dirname } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import type { ContainerSpec, Containers, TakeOver } from "../containers/containers.ts";
import type { Disks } from "./disks.ts";

type Engine = Pick<Containers, "create" | "inspect" | "remove" | "image">;

interface SuccessorDeps {
  readonly engine: Engine;
  readonly disks: Pick<Disks, "imageOf" | "takeOver">;
  /** The image below a stored disk, or the image itself. */
  readonly onWhat: (image: string) => string;
}

/** When this rejects, the disk is as it was or belongs to the container that `own` was called with. */
export async function successor(
  spec: Omit<ContainerSpec, "takeOver">,
  { from, own }: TakeOver,
  { engine, disks, onWhat }: SuccessorDeps,
): Promise<string> {
  const name = spec.build.image;
  const image = (await disks.imageOf(from)) ?? onWhat(name);
  if ((await engine.image(image)) === undefined)
    throw new AppError(
      "no_compatible_node",
      `the sandbox's container was removed from Docker, and so was image ${name} (${image}), on which its disk stands; its ` +
        "disk and memory are kept: the operator loads that image into the node's Docker again (docker load), or kills the sandbox",
    );
  const containerId = await engine.create({ ...spec, build: { ...spec.build, image } });
  try {
    const layer = await layerOf(containerId, engine);
    own(containerId);
    await disks.takeOver(from, { containerId, ...layer });
    return containerId;
  } catch (cause) {
    // Its disk stays: it may have moved already.
    await engine.remove(containerId).catch(() => undefined);
    if (cause instanceof AppError) throw cause;
    throw new AppError("sandbox_create_failed", "the disk of a lost container could not be taken over", { cause });
  }
}

/** Docker's directory of the container's layer, and the id of its image. */
export async function layerOf(
  containerId: string,
  engine: Pick<Engine, "inspect">,
): Promise<{ readonly layer: string; readonly image: string | undefined }> {
  const found = await engine.inspect(containerId);
  if (found?.upperDirectory === undefined)
    throw new Error("the Docker daemon names no directory of the container's layer");
  return { layer: dirname(found.upperDirectory), image: found.image };
}
