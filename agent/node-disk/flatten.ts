/** Makes one layer of an image with many. The copy turns holes of all its layers into bytes, so large ones are refused. */

import type { Containers } from "../containers/containers.ts";
import { type FindHole, refuseHoles } from "./holes.ts";

/** overlay2 stacks at most 128 layers, and sandboxes and their snapshots add some on top. */
const MOST_LAYERS = 60;

export interface FlattenDeps {
  readonly containers: Pick<Containers, "layers" | "layerDirectories" | "flatten">;
  readonly findHole: FindHole;
}

/** @throws {AppError} failed_precondition that names the sparse file; the image stays as it is */
export async function flattenWhenDeep(image: string, { containers, findHole }: FlattenDeps): Promise<void> {
  if ((await containers.layers(image)) < MOST_LAYERS) return;
  for (const directory of await containers.layerDirectories(image)) await refuseHoles(directory, findHole);
  await containers.flatten(image);
}
