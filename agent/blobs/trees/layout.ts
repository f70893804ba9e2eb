/** Which bytes of a tree become which blob: large files cell by cell, small files packed together. */

import { CELL_BYTES, type Cell, cellsOf, type Extent } from "./extents.ts";
import type { Scanned, ScannedFile } from "./scan.ts";

/** A memory image has fifty files of a few kilobytes; each as a blob of its own would be a request of its own. */
const SMALL_BYTES = 256 * 1024;

/** A part of a file in a blob. */
interface Part {
  readonly file: ScannedFile;
  readonly at: number;
  readonly length: number;
  /** Where the part begins in the blob. */
  readonly from: number;
  /** Data in the part, by their place in the file; the rest is zeros. */
  readonly data: readonly Extent[];
}

/** What becomes a blob, unless it is all zeros. */
export interface PlannedBlob {
  readonly length: number;
  readonly parts: readonly Part[];
}

/** In the order of the tree, so that the same tree is always cut in the same way. */
export function* planBlobs(scanned: readonly Scanned[], cellBytes = CELL_BYTES): Generator<PlannedBlob> {
  let pack: Part[] = [];
  let packed = 0;
  for (const entry of scanned) {
    if (entry.type !== "file" || entry.data.length === 0) continue;
    if (entry.size > Math.min(SMALL_BYTES, cellBytes)) {
      for (const cell of cellsOf(entry.size, entry.data, cellBytes)) yield ofCell(entry, cell);
      continue;
    }
    if (packed + entry.size > cellBytes) {
      yield { length: packed, parts: pack };
      [pack, packed] = [[], 0];
    }
    pack.push({ file: entry, at: 0, length: entry.size, from: packed, data: entry.data });
    packed += entry.size;
  }
  if (packed > 0) yield { length: packed, parts: pack };
}

/** Bytes that are read. */
export function plannedBytes(scanned: readonly Scanned[]): number {
  return scanned.reduce((sum, entry) => sum + (entry.type === "file" ? ofExtents(entry.data) : 0), 0);
}

export function dataOf({ parts }: PlannedBlob): number {
  return parts.reduce((sum, { data }) => sum + ofExtents(data), 0);
}

function ofCell(file: ScannedFile, { at, length, data }: Cell): PlannedBlob {
  return { length, parts: [{ file, at, length, from: 0, data }] };
}

function ofExtents(extents: readonly Extent[]): number {
  return extents.reduce((sum, { length }) => sum + length, 0);
}
