/** Cached layers: which exist, and how a new one comes to be. */

import type { Containers } from "../../containers/containers.ts";
import type { LayerStore } from "../../store/layers.ts";
import type { Workshop } from "../steps/build-container.ts";

/** overlay2 can stack 128, and sandboxes and their snapshots need some on top. */
const MOST_LAYERS = 60;

export interface LayersDeps {
  readonly containers: Pick<Containers, "image" | "layers" | "flatten" | "untag">;
  readonly store: LayerStore;
  readonly now: () => number;
}

export interface Layers {
  /** The image of a key that is there, and is used with this. */
  use(key: string): Promise<string | undefined>;
  /** Only looks. */
  known(key: string): boolean;
  /** A step that changes nothing on the disk: its key stands for the image before it. */
  alias(key: string, image: string): void;
  /** What the container holds now. `grown`: bytes that it adds to what the container was made of. */
  keep(key: string, workshop: Workshop): Promise<{ image: string; grown: number }>;
}

export function createLayers({ containers, store, now }: LayersDeps): Layers {
  return {
    known: (key) => store.get(key) !== undefined,
    async use(key) {
      const layer = store.get(key);
      if (layer === undefined) return undefined;
      const found = await containers.image(layer.image);
      if (found === undefined) {
        // Somebody tidied up the engine.
        store.remove(key);
        return undefined;
      }
      store.used(key, now());
      return layer.image;
    },
    alias: (key, image) => store.put({ key, image, bytes: 0, usedAt: now() }),
    async keep(key, workshop) {
      const image = layerImage(key);
      const below = (await containers.image(workshop.container.build.image))?.bytes ?? 0;
      await workshop.commit(image);
      if ((await containers.layers(image)) >= MOST_LAYERS) await containers.flatten(image);
      const bytes = (await containers.image(image))?.bytes ?? below;
      const grown = Math.max(0, bytes - below);
      store.put({ key, image, bytes: grown, usedAt: now() });
      return { image, grown };
    },
  };
}

function layerImage(key: string): string {
  return `svc/layer:${key}`;
}
