/**
 * Processes of this sandbox that the kernel ended because the sandbox had used up its memory. The kernel only counts them
 * and does not say which they were, so an end is explained by a kill that was seen at the same time. The counter is read
 * when a process starts or ends and when the log is read, because an idle sandbox runs no timers; the kernel's notice of a
 * kill needs a cgroup that can be written.
 */

import type { Journal } from "../runtime/journal.ts";
import type { ExitReport } from "./exit-status.ts";

/** The kernel's counter and the limit of the sandbox's memory. */
export interface MemoryCounter {
  readonly kills: number;
  /** Undefined: no limit. */
  readonly limitBytes: number | undefined;
}

/** A kill explains an end that envd sees within this time: a large process takes a while to give its memory back. */
const RECENT_MS = 5_000;
const MOST_UNEXPLAINED = 100;
const MIB = 1024 * 1024;

/** Adds the reason to a report of an end, or returns it unchanged. */
export type Explain = (report: ExitReport) => ExitReport;

interface MemoryKillsDeps {
  /** Undefined where the kernel does not count. */
  readonly read: () => MemoryCounter | undefined;
  readonly journal: Journal;
  readonly now: () => number;
}

export class MemoryKills {
  readonly #deps: MemoryKillsDeps;
  /** Value of the counter when it was read last. */
  #counter: number;
  /** Number of the last kill, counted over all restores; the kernel's counter begins again with each. */
  #last = 0;
  /** Kills that have explained no end yet, oldest first. */
  #unexplained: { readonly number: number; readonly seenAt: number }[] = [];

  constructor(deps: MemoryKillsDeps) {
    this.#deps = deps;
    this.#counter = deps.read()?.kills ?? 0;
  }

  /** Reads the counter and logs new kills. Needed at a restore, before another look: the counter begins again at zero. */
  look(): MemoryCounter | undefined {
    const { read, journal, now } = this.#deps;
    const counter = read();
    if (counter === undefined) return undefined;
    const fresh = counter.kills < this.#counter ? counter.kills : counter.kills - this.#counter;
    this.#counter = counter.kills;
    if (fresh === 0) return counter;
    const seenAt = now();
    for (let kill = Math.max(1, fresh - MOST_UNEXPLAINED + 1); kill <= fresh; kill += 1)
      this.#unexplained.push({ number: this.#last + kill, seenAt });
    this.#unexplained.splice(0, this.#unexplained.length - MOST_UNEXPLAINED);
    this.#last += fresh;
    const what = fresh === 1 ? "a process" : `${fresh} processes`;
    journal.write("error", "memory", `the kernel killed ${what}: ${reason(counter)}`, { kills: fresh });
    return counter;
  }

  /** Must be called when a process starts; the result explains its end, or that of a shell whose command was killed. */
  watch(): Explain {
    this.look();
    const before = this.#last;
    return (report) => {
      if (!isKilled(report)) return report;
      const counter = this.look();
      const since = this.#deps.now() - RECENT_MS;
      const at = this.#unexplained.findLastIndex(({ number, seenAt }) => number > before && seenAt >= since);
      if (counter === undefined || at < 0) return report;
      this.#unexplained.splice(at, 1);
      return { ...report, error: `${report.status} (${reason(counter)})` };
    };
  }
}

/** By SIGKILL; a shell reports that of its command as 128 + 9. */
function isKilled({ exited, exitCode, status }: ExitReport): boolean {
  return exited ? exitCode === 137 : status === "signal: killed";
}

function reason({ limitBytes }: MemoryCounter): string {
  return limitBytes === undefined ? "out of memory" : `out of memory: limit ${Math.round(limitBytes / MIB)} MiB`;
}
