/**
 * The images of templates that this node has built go to the blob store, each as a tree of its own. Layers that templates of a project
 * share, also with the images below its snapshots, are stored once, because blobs are named by their content.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import { dataBytes } from "../../blobs/trees/manifest.ts";
import type { Containers } from "../../containers/containers.ts";
import type { DiskReserve } from "../../node-disk/reserve.ts";
import type { Build } from "../../store/builds.ts";
import type { Stores } from "../../store/stores.ts";
import type { ImageTrees } from "./image-trees.ts";
import type { Subject, Subjects } from "./uploads.ts";

export interface ImageUploadsDeps {
  readonly stores: Pick<Stores, "builds">;
  readonly containers: Pick<Containers, "image">;
  readonly blobs: Pick<Blobs, "codec" | "extents" | "transfers">;
  readonly images: ImageTrees;
  readonly disk: Pick<DiskReserve, "storageRefusal">;
  readonly now: () => number;
}

/** The image of a build that is ready. */
export interface BuiltImage extends Subject {
  /** Its name in Docker. */
  readonly image: string;
  readonly projectId: string | undefined;
}

export function imageUploads({ stores, containers, blobs, images, disk, now }: ImageUploadsDeps): Subjects<BuiltImage> {
  return {
    kind: "images",
    name: (id) => `the image of build ${id}`,
    all: () => stores.builds.all().flatMap(toImage),
    get: (id) => toImage(stores.builds.get(id))[0],
    // Its blobs would have no one to be named for.
    wanted: ({ projectId }) => projectId !== undefined,
    rests: () => true,
    logged: ({ id }) => ({ buildId: id }),
    async upload({ image, projectId = "" }, store, { signal, progress }) {
      const found = await containers.image(image);
      if (found === undefined)
        throw new BlobError("changed", `Docker does not have the image ${image} any more: build the template again`);
      // It is on its way through this node's disk, which builds and sandboxes need.
      const refused = await disk.storageRefusal({ snapshots: found.bytes, sandboxes: 0 });
      if (refused !== undefined)
        throw new AppError(refused.code, `the image is not read out of Docker: ${refused.message}`);
      const { extents, transfers } = blobs;
      const begun = now();
      const upload = { store, codec: blobs.codec(projectId), extents, transfers, now };
      const { ref, manifest } = await images.upload({ image, domain: projectId, begun, progress }, upload, signal);
      return { ref, bytes: dataBytes(manifest) };
    },
  };
}

function toImage(build: Build | undefined): BuiltImage[] {
  if (build?.state !== "ready" || build.result === undefined) return [];
  const { id, projectId, changedAt, result } = build;
  return [{ id, takenAt: changedAt, image: result.image, projectId }];
}
