/**
 * The time that all orchestrators of a database share: this machine's clock, with its difference from the database's. When somebody
 * sets this machine's clock, the time goes on as before, so that no sandbox ends early or late for that. With several processes it
 * stays so, because the database's clock counts; a process that is alone takes the time as it was set, by `follow`.
 */

export interface Clock {
  readonly now: () => number;
  readonly onDifference: (ms: number) => void;
  /**
   * If this machine's clock was set since the last call, runs the work with the milliseconds by which it was set, and takes the time as
   * it was set once the work is done. Where the work fails, the time goes on as before until the next call.
   */
  readonly follow: (work: (ms: number) => Promise<void>) => Promise<void>;
}

/** A clock that was set by less goes its way: it is taken at once, and sandboxes end by so much earlier or later. */
const LEAST_STEP_MS = 2_000;
/** With more time between two readings, this process stood still between them, and they say nothing of each other. */
const APART_MS = LEAST_STEP_MS / 2;

/** @param elapsed milliseconds that never jump */
export function createClock(ofMachine: () => number, elapsed: () => number = () => performance.now()): Clock {
  let difference = 0;
  /** By how much the machine's clock was set that this time has not followed. */
  let held = 0;
  let offset = ofMachine() - elapsed();

  function read(): number {
    const before = elapsed();
    const at = ofMachine();
    const after = elapsed();
    if (after - before >= APART_MS) return at;
    const step = at - after - offset;
    offset += step;
    // Times are whole milliseconds.
    if (Math.abs(step) >= LEAST_STEP_MS) held += Math.round(step);
    return at;
  }

  return {
    now: () => read() + difference - held,
    onDifference: (ms) => void (difference = ms),
    async follow(work) {
      read();
      const ms = held;
      if (ms === 0) return;
      await work(ms);
      held -= ms;
    },
  };
}
