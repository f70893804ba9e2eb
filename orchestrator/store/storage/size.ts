/** The size of a snapshot on its node. Pure. */

export interface SnapshotSize {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** The sizes alone, of a node's answer or report. */
export function sizesOf({ memoryBytes, diskBytes }: SnapshotSize): SnapshotSize {
  return { memoryBytes, diskBytes };
}

export function totalBytes({ memoryBytes, diskBytes }: SnapshotSize): number {
  return memoryBytes + diskBytes;
}
