/** The outcome of reading one part of a snapshot: what is faulty in it, and the state that follows. No I/O. */

import { type CheckedPart, MOST_FAULTS, type PartState } from "../../../shared/agent-api/snapshot-check-shapes.ts";

const LONGEST_FAULT = 1_000;
/** The worst first: a part is what the worst of its files or blobs is. */
const WORST: readonly PartState[] = ["damaged", "missing", "unread", "read", "whole"];

export interface PartNotes {
  /** One file or blob that is not whole. */
  readonly fault: (state: Exclude<PartState, "whole" | "read">, text: string) => void;
  /** Bytes that were read. */
  readonly read: (bytes: number) => void;
  /** @param otherwise the state of a part without a fault */
  readonly outcome: (otherwise: "whole" | "read") => CheckedPart;
}

export function partNotes(part: CheckedPart["part"], onRead: (bytes: number) => void): PartNotes {
  const faults: string[] = [];
  const states = new Set<PartState>();
  const counts = { faulty: 0, bytes: 0 };
  return {
    fault(state, text) {
      counts.faulty++;
      states.add(state);
      if (faults.length < MOST_FAULTS) faults.push(text.slice(0, LONGEST_FAULT));
    },
    read(bytes) {
      counts.bytes += bytes;
      onRead(bytes);
    },
    outcome: (otherwise) => ({
      part,
      state: WORST.find((state) => states.has(state)) ?? otherwise,
      bytes: counts.bytes,
      faulty: counts.faulty,
      faults,
    }),
  };
}

export interface CheckOptions {
  readonly signal: AbortSignal;
  /** What is to be read, as soon as it is known. */
  readonly total: (bytes: number) => void;
  readonly read: (bytes: number) => void;
}
