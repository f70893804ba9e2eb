/** The size of a snapshot on its node. Pure. */

export interface SnapshotSize {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** The sizes alone, of a node's answer or report. */
export function sizesOf({ memoryBytes, diskBytes }: SnapshotSize): SnapshotSize {
  return { memoryBytes, diskBytes };
}

/** From two columns that are written together. */
export function sizeOf(memoryBytes: number | null, diskBytes: number | null): SnapshotSize | undefined {
  return memoryBytes === null || diskBytes === null ? undefined : { memoryBytes, diskBytes };
}

export function totalBytes({ memoryBytes, diskBytes }: SnapshotSize): number {
  return memoryBytes + diskBytes;
}
