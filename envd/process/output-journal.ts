/** Logs a process's output line by line, within a budget, so that endless output costs little processor time. */

import type { Journal } from "../runtime/journal.ts";
import type { Stream } from "./subscription.ts";

const LONGEST_LINE_BYTES = 4096;
/** Bytes that are logged per process and second; further output is only counted. */
const BUDGET_BYTES = 64 * 1024;
const BUDGET_WINDOW_MS = 1_000;
const NEWLINE = 10;

export interface OutputJournal {
  readonly observe: (stream: Stream, bytes: Uint8Array) => void;
  /** Logs an unfinished last line. */
  flush(): void;
}

export function outputJournal(journal: Journal, pid: number): OutputJournal {
  const partial = new Map<Stream, Buffer>();
  let windowStart = 0;
  let spent = 0;
  let skipped = 0;

  const write = (stream: Stream, line: Buffer) => {
    if (line.length > 0)
      journal.write("info", "process", line.toString("utf8", 0, LONGEST_LINE_BYTES), { pid, stream });
  };

  const withinBudget = (size: number): boolean => {
    const now = Date.now();
    if (now - windowStart >= BUDGET_WINDOW_MS) {
      if (skipped > 0) journal.write("warn", "process", "output not logged", { pid, bytes: skipped });
      windowStart = now;
      spent = 0;
      skipped = 0;
    }
    if (spent >= BUDGET_BYTES) {
      skipped += size;
      return false;
    }
    spent += size;
    return true;
  };

  const observe = (stream: Stream, bytes: Uint8Array) => {
    // A terminal's bytes are cursor movements and echoes; they make no readable lines.
    if (stream === "pty" || !withinBudget(bytes.length)) return;
    let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const before = partial.get(stream);
    if (before !== undefined) rest = Buffer.concat([before, rest]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      write(stream, rest.subarray(0, end));
      rest = rest.subarray(end + 1);
    }
    // A copy, because a reference would keep the whole chunk in memory.
    if (rest.length === 0) partial.delete(stream);
    else partial.set(stream, Buffer.from(rest.subarray(0, LONGEST_LINE_BYTES)));
  };

  const flush = () => {
    for (const [stream, line] of partial) write(stream, line);
    partial.clear();
    if (skipped > 0) journal.write("warn", "process", "output not logged", { pid, bytes: skipped });
  };

  return { observe, flush };
}
