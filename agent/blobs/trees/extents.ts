/** Where a file has data, and how it is cut into cells that become blobs. */

import type { RunCommand } from "../../host/command.ts";

export interface Extent {
  readonly at: number;
  readonly length: number;
}

/** Ranges of data of a file, in order; the rest of it is holes. */
export type FindExtents = (path: string, size: number) => Promise<readonly Extent[]>;

/**
 * Bytes of a cell. Cells lie on a grid of the file, so that what stays where it was has the same blobs again. A larger cell makes
 * fewer requests, and a smaller one sends less of what has changed.
 */
export const CELL_BYTES = 4 * 1024 * 1024;
const LIMIT_MS = 60_000;

/** @param program path of `svc-extents` */
export function hostExtents(run: RunCommand, program: () => Promise<string>): FindExtents {
  return async (path, size) => {
    try {
      return readExtents(await run(await program(), [path], { timeoutMs: LIMIT_MS }));
    } catch (error) {
      // Where the file system cannot tell, holes are read as zeros, which takes longer and gives the same.
      if (error instanceof Error && / ended with 3: /.test(error.message)) return [{ at: 0, length: size }];
      throw error;
    }
  };
}

function readExtents(output: string): Extent[] {
  const lines = output.split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const [at = Number.NaN, length = Number.NaN] = line.split(" ").map(Number);
    if (!Number.isSafeInteger(at) || !Number.isSafeInteger(length)) throw new Error(`svc-extents printed ${line}`);
    return { at, length };
  });
}

export interface Cell extends Extent {
  /** The data in it. */
  readonly data: readonly Extent[];
}

/** The cells of a file that have data, in order. */
export function* cellsOf(size: number, extents: readonly Extent[], cellBytes = CELL_BYTES): Generator<Cell> {
  let cell: { at: number; data: Extent[] } | undefined;
  const whole = ({ at, data }: { at: number; data: Extent[] }): Cell => ({
    at,
    length: Math.min(cellBytes, size - at),
    data,
  });
  for (const extent of extents) {
    // The file may have become shorter since; what was read is compared at the end.
    const end = Math.min(size, extent.at + extent.length);
    for (let at = extent.at; at < end; ) {
      const begin = at - (at % cellBytes);
      const length = Math.min(end, begin + cellBytes) - at;
      if (cell !== undefined && cell.at !== begin) yield whole(cell);
      if (cell === undefined || cell.at !== begin) cell = { at: begin, data: [] };
      cell.data.push({ at, length });
      at += length;
    }
  }
  if (cell !== undefined) yield whole(cell);
}

const ZEROS = Buffer.alloc(64 * 1024);

export function isZero(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const part = bytes.subarray(at, at + ZEROS.length);
    if (ZEROS.compare(part, 0, part.length, 0, part.length) !== 0) return false;
  }
  return true;
}

/** Bytes of a file system's block. Zeros of this length, where they lie on this grid, become a hole. */
const BLOCK_BYTES = 4_096;

/** The parts of what is written at `at` that are not whole blocks of zeros. */
export function* withoutZeros(at: number, bytes: Uint8Array): Generator<{ at: number; bytes: Uint8Array }> {
  let begin: number | undefined;
  let from = 0;
  while (from < bytes.length) {
    const length = Math.min(bytes.length - from, BLOCK_BYTES - ((at + from) % BLOCK_BYTES));
    const zero = isZero(bytes.subarray(from, from + length));
    if (zero && begin !== undefined) {
      yield { at: at + begin, bytes: bytes.subarray(begin, from) };
      begin = undefined;
    } else if (!zero) begin ??= from;
    from += length;
  }
  if (begin !== undefined) yield { at: at + begin, bytes: bytes.subarray(begin) };
}
