/** Removes unused images of builds: names without a build or a layer, and cached layers beyond the budget. */

import type { Containers } from "../../containers/containers.ts";
import type { Build, BuildStore } from "../../store/builds.ts";
import type { Layer, LayerStore } from "../../store/layers.ts";
import type { RemainsStore } from "../../store/remains.ts";

export interface BuildGarbageDeps {
  readonly containers: Pick<Containers, "buildImages" | "image" | "untag">;
  readonly stores: {
    readonly builds: Pick<BuildStore, "all">;
    readonly layers: Pick<LayerStore, "all" | "remove">;
    readonly remains: Pick<RemainsStore, "held">;
  };
  readonly nodeId: string;
  readonly budgetBytes: number;
}

export interface BuildGarbage {
  /** Names to remove. */
  readonly names: readonly string[];
  readonly layers: readonly Layer[];
}

interface View {
  /** Images of this node: by label, or by the node's id in the name. */
  readonly names: readonly string[];
  /** Names that a lost database knew. */
  readonly held: ReadonlySet<string>;
  readonly builds: readonly Pick<Build, "id" | "state">[];
  readonly layers: readonly Layer[];
  readonly budgetBytes: number;
}

/** Least recently used first; a layer below others frees its room with the last of them. Pure. */
export function planBuildGarbage({ names, held, builds, layers, budgetBytes }: View): BuildGarbage {
  const kept = new Set(builds.filter(({ state }) => state === "ready").map(({ id }) => id));
  const building = builds.filter(({ state }) => state === "building").map(({ id }) => id);
  const cached = new Set(layers.map(({ image }) => image));
  const needed = (name: string) => {
    // Layers of a build under way get their row shortly after their name.
    if (name.startsWith("svc/layer:")) return cached.has(name) || building.length > 0;
    return building.some((id) => name.endsWith(id)) || kept.has(name.slice(name.lastIndexOf(":") + 1));
  };
  let bytes = 0;
  const old = [...layers]
    .sort((a, b) => b.usedAt - a.usedAt)
    .filter((layer) => {
      bytes += layer.bytes;
      return bytes > budgetBytes;
    });
  return { names: names.filter((name) => !needed(name) && !held.has(name)), layers: building.length > 0 ? [] : old };
}

export async function findBuildGarbage({
  containers,
  stores,
  nodeId,
  budgetBytes,
}: BuildGarbageDeps): Promise<BuildGarbage> {
  const names = await ownBuildImages({ containers, nodeId });
  // Read after the list of images: builds that began meanwhile have their rows by now.
  const { images: held } = stores.remains.held();
  return planBuildGarbage({ names, held, builds: stores.builds.all(), layers: stores.layers.all(), budgetBytes });
}

/** Names of images that builds of this node have made. */
export async function ownBuildImages({
  containers,
  nodeId,
}: Pick<BuildGarbageDeps, "nodeId"> & { readonly containers: Pick<Containers, "buildImages" | "image"> }): Promise<
  string[]
> {
  const names: string[] = [];
  for (const name of await containers.buildImages()) {
    const pulled = new RegExp(`^svc/from:(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).exec(name)?.[1];
    const own =
      pulled === undefined ? (await containers.image(name))?.labels["svc.node"] === nodeId : pulled === nodeId;
    if (own) names.push(name);
  }
  return names;
}

export async function removeBuildGarbage(deps: BuildGarbageDeps): Promise<void> {
  const { names, layers } = await findBuildGarbage(deps);
  for (const name of names) await deps.containers.untag(name);
  await removeLayers(layers, deps);
}

type LayerDeps = { readonly stores: Pick<BuildGarbageDeps["stores"], "builds" | "layers"> } & {
  readonly containers: Pick<Containers, "untag">;
};

async function removeLayers(layers: readonly Layer[], deps: LayerDeps): Promise<void> {
  const rest = new Set(
    deps.stores.layers
      .all()
      .filter(({ key }) => !layers.some((layer) => layer.key === key))
      .map(({ image }) => image),
  );
  for (const { key, image } of layers) {
    deps.stores.layers.remove(key);
    if (image.startsWith("svc/layer:") && !rest.has(image)) await deps.containers.untag(image);
  }
}

/** Cached layers, least recently used first. While a build is under way it may need any of them. */
export function cachedLayers({
  builds,
  layers,
}: Pick<BuildGarbageDeps["stores"], "builds" | "layers">): { id: string; inUse: boolean }[] {
  const inUse = builds.all().some(({ state }) => state === "building");
  return layers
    .all()
    .sort((a, b) => a.usedAt - b.usedAt)
    .map(({ key }) => ({ id: key, inUse }));
}

/** Removes one cached layer, unless a build is under way. */
export async function dropLayer(key: string, deps: LayerDeps): Promise<void> {
  if (deps.stores.builds.all().some(({ state }) => state === "building")) return;
  await removeLayers(
    deps.stores.layers.all().filter((layer) => layer.key === key),
    deps,
  );
}

export function describeBuildGarbage({ names, layers }: BuildGarbage): string {
  const lines = [
    ...names.map((name) => `image ${name}`),
    ...layers.map(({ image, bytes }) => `cached layer ${image}: ${(bytes / 1024 ** 2).toFixed(1)} MiB`),
  ];
  return lines.join("\n");
}
