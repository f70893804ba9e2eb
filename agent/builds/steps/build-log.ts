/** The log of one build: buffers entries, cuts them to size, and writes them in groups. */

import type { BuildLogEntry } from "../../../shared/agent-api/build-shapes.ts";
import type { BuildStore } from "../../store/builds.ts";

const LONGEST_LINE = 8_192;
/** Of a line of a program's output: leaves room for what is written before it. */
const LONGEST_PIECE = 8_000;
/** Limit for programs that print without end. */
const MOST_ENTRIES = 50_000;
const FLUSH_MS = 100;
/** Entries that are kept while they cannot be stored. */
const MOST_WAITING = 1_000;

/** The log of one program. */
interface OutputLog {
  readonly push: (stream: "stdout" | "stderr", bytes: Buffer) => void;
  readonly end: () => void;
}

type BuildLogLevel = BuildLogEntry["level"];

export interface BuildLog {
  write(level: BuildLogLevel, message: string, step: string): void;
  /** Output of a program, split into lines; `end` writes an unfinished line. */
  output(prefix: string, step: string): OutputLog;
  /** Writes all entries so far to the store. */
  flush(): void;
}

export function createBuildLog(buildId: string, store: Pick<BuildStore, "log">, now: () => number): BuildLog {
  const waiting: BuildLogEntry[] = [];
  const state = { count: 0, timer: undefined as NodeJS.Timeout | undefined };

  const flushLater = () => {
    try {
      flush();
    } catch {
      // The disk is full or broken, and an error in a timer would end the agent. The newest entries wait for the next write.
      waiting.splice(0, waiting.length - MOST_WAITING);
    }
  };

  const flush = () => {
    clearTimeout(state.timer);
    state.timer = undefined;
    if (waiting.length === 0) return;
    store.log(buildId, [...waiting]);
    waiting.length = 0;
  };

  const write = (level: BuildLogLevel, message: string, step: string) => {
    // The build's own entries are few, and the last ones matter most.
    if (step !== "" && state.count === MOST_ENTRIES)
      waiting.push({ at: now(), level: "warn", message: "The log is full: what follows is left out", step });
    if (state.count++ >= MOST_ENTRIES && (level === "info" || level === "warn" || level === "debug")) return;
    waiting.push({ at: now(), level, message: message.slice(0, LONGEST_LINE), step });
    state.timer ??= setTimeout(flushLater, FLUSH_MS);
  };

  return {
    write,
    flush,
    output(prefix, step) {
      const lines = { stdout: createLines(), stderr: createLines() };
      const tell = (stream: "stdout" | "stderr", line: string) =>
        write(stream === "stdout" ? "info" : "warn", `${prefix} [${stream}]: ${line}`, step);
      return {
        push(stream, bytes) {
          for (const line of lines[stream].push(bytes)) tell(stream, line);
        },
        end() {
          for (const stream of ["stdout", "stderr"] as const) {
            for (const line of lines[stream].rest()) tell(stream, line);
          }
        },
      };
    },
  };
}

/**
 * Splits bytes into lines, and longer lines into pieces. A progress bar that rewrites its line is kept as it is at the line's
 * end.
 */
export function createLines() {
  const decoder = new TextDecoder();
  let held = "";
  return {
    push(bytes: Buffer): string[] {
      held += decoder.decode(bytes, { stream: true });
      const lines = held.split("\n");
      held = lines.pop() ?? "";
      const result = lines.flatMap((line) => pieces(shown(line)));
      if (held.length > LONGEST_PIECE) {
        const [, kept] = cutReturns(held);
        const begun = pieces(shown(held));
        held = (begun.pop() ?? "") + kept;
        result.push(...begun);
      }
      return result;
    },
    rest(): string[] {
      const last = shown(held + decoder.decode());
      held = "";
      return last === "" ? [] : pieces(last);
    },
  };
}

function shown(line: string): string {
  const [text] = cutReturns(line);
  return text.slice(text.lastIndexOf("\r") + 1);
}

/** The line without the carriage returns at its end, and one of them, if there are any. */
function cutReturns(line: string): [text: string, kept: string] {
  let end = line.length;
  while (line[end - 1] === "\r") end -= 1;
  return [line.slice(0, end), end < line.length ? "\r" : ""];
}

/** At least one, which may be empty. */
function pieces(line: string): string[] {
  const result = [line.slice(0, LONGEST_PIECE)];
  for (let at = LONGEST_PIECE; at < line.length; at += LONGEST_PIECE) result.push(line.slice(at, at + LONGEST_PIECE));
  return result;
}
