/** One line on standard error that says how far a transfer is and how fast; only on a terminal. */

import { escapeLine } from "./escape.ts";
import type { Output, Terminals } from "./output.ts";
import { bytes } from "./time.ts";

const EVERY_MS = 200;

export interface Progress {
  readonly passed: (count: number) => void;
  /** Removes the line. */
  end(): void;
}

export function createProgress(
  { out, streams }: { readonly out: Output; readonly streams: Terminals },
  what: string,
  total?: number,
): Progress {
  const begun = Date.now();
  let sum = 0;
  let shownAt = 0;
  return {
    passed(count) {
      sum += count;
      const now = Date.now();
      if (!out.isTerminal.err || now - shownAt < EVERY_MS) return;
      shownAt = now;
      const rate = bytes((sum * 1000) / Math.max(1, now - begun));
      const part = total === undefined || total === 0 ? "" : ` of ${bytes(total)}`;
      streams.stderr.write(`\r\u001b[K${escapeLine(what)}  ${bytes(sum)}${part}  ${rate}/s`);
    },
    end() {
      if (out.isTerminal.err && shownAt > 0) streams.stderr.write("\r\u001b[K");
    },
  };
}
