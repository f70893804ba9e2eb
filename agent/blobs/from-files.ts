/** A source that cuts blobs out of a tree on this node, for other nodes that do without a store, or read faster here. */

import { BlobError } from "./content/blob-error.ts";
import type { BlobCodec } from "./content/codec.ts";
import type { Packing } from "./content/packing.ts";
import { parseRef } from "./content/refs.ts";
import type { BlobSource } from "./sources.ts";
import { files, type TreeManifest, writeManifest } from "./trees/manifest.ts";
import { readPart } from "./trees/read-part.ts";

interface Place {
  readonly path: string;
  readonly at: number;
  readonly length: number;
  readonly from: number;
}

export interface TreeSource extends BlobSource {
  get(ref: string, signal: AbortSignal, packing?: Packing): Promise<Uint8Array | undefined>;
}

/**
 * The blobs of this manifest and the manifest itself, by their ids: the period of a reference does not count here.
 * @param root where the tree is, unchanged since it was uploaded or described
 */
export function treeSource(
  codec: BlobCodec,
  {
    name,
    ref,
    root,
    manifest,
  }: { readonly name: string; readonly ref: string; readonly root: string; readonly manifest: TreeManifest },
): TreeSource {
  const own = parseRef(ref).id;
  const lengths = new Map(manifest.blobs.map(([blob, length]) => [parseRef(blob).id, length]));
  const places = new Map<string, Place[]>();
  for (const { path, pieces } of files(manifest.entries))
    for (const [at, length, index, from] of pieces) {
      const [blob] = manifest.blobs[index] ?? [];
      const id = blob === undefined ? undefined : parseRef(blob).id;
      if (id === undefined) continue;
      const ofBlob = places.get(id) ?? [];
      ofBlob.push({ path, at, length, from });
      places.set(id, ofBlob);
    }

  return {
    name,
    async get(ref, signal, packing) {
      signal.throwIfAborted();
      const { id } = parseRef(ref);
      if (id === own) return codec.encode(id, writeManifest(manifest), packing);
      const length = lengths.get(id);
      if (length === undefined) return undefined;
      const content = Buffer.alloc(length);
      for (const { path, at, from, length } of places.get(id) ?? [])
        await readPart(root, { path, at, from, data: [{ at, length }] }, content);
      // Another node would ask here again and again: it is told that the files are not what they were.
      if ((await codec.idOf(content)) !== id)
        throw new BlobError("changed", `${root} has changed since it was described`);
      return codec.encode(id, content, packing);
    },
  };
}
