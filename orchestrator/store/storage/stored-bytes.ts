/** The size of a snapshot on its node. Pure. */

export interface StoredBytes {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** The sizes alone, of a node's answer or report. */
export function storedBytesOf({ memoryBytes, diskBytes }: StoredBytes): StoredBytes {
  return { memoryBytes, diskBytes };
}

export function totalBytes({ memoryBytes, diskBytes }: StoredBytes): number {
  return memoryBytes + diskBytes;
}
