/** Cached layers: finds them and makes new ones. */

import { defined } from "../../../shared/defined.ts";
import type { Containers } from "../../containers/containers.ts";
import { type FlattenDeps, flattenWhenDeep } from "../../node-disk/flatten.ts";
import type { LayerStore } from "../../store/layers.ts";
import type { BuildContainer } from "../steps/build-container.ts";
import type { StepContext } from "../steps/context.ts";

export interface LayersDeps {
  readonly containers: Pick<Containers, "image" | "untag"> & FlattenDeps["containers"];
  readonly findHole: FlattenDeps["findHole"];
  readonly store: LayerStore;
  readonly now: () => number;
}

export interface Layers {
  /** The cached image of a key, and the context after its step; marks it as used. */
  use(key: string): Promise<CachedLayer | undefined>;
  /** Whether a step has a cached image under this key; does not mark it as used. */
  known(key: string): boolean;
  /** Caches a step that changes nothing on the disk: its key gets `image`, the image before the step. */
  alias(key: string, image: string, context: StepContext): void;
  /** Commits the container as an image. `grown`: bytes that the container added to its image. A base has no context. */
  keep(key: string, buildContainer: BuildContainer, context?: StepContext): Promise<{ image: string; grown: number }>;
}

interface CachedLayer {
  readonly image: string;
  readonly context: StepContext | undefined;
}

export function createLayers({ containers, findHole, store, now }: LayersDeps): Layers {
  return {
    known: (key) => store.get(key)?.context !== undefined,
    async use(key) {
      const layer = store.get(key);
      if (layer === undefined) return undefined;
      const found = await containers.image(layer.image);
      if (found === undefined) {
        // The image was removed outside of the platform.
        store.remove(key);
        return undefined;
      }
      store.used(key, now());
      return { image: layer.image, context: layer.context };
    },
    alias: (key, image, context) => store.put({ key, image, bytes: 0, usedAt: now(), context }),
    async keep(key, buildContainer, context) {
      const image = layerImage(key);
      const below = (await containers.image(buildContainer.container.build.image))?.bytes ?? 0;
      await buildContainer.commit(image);
      await flattenWhenDeep(image, { containers, findHole });
      const bytes = (await containers.image(image))?.bytes ?? below;
      const grown = Math.max(0, bytes - below);
      store.put({ key, image, bytes: grown, usedAt: now(), ...defined({ context }) });
      return { image, grown };
    },
  };
}

function layerImage(key: string): string {
  return `svc/layer:${key}`;
}
