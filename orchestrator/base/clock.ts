/** The time that all orchestrators of a database share: this machine's clock, with its difference from the database's. */

export interface Clock {
  readonly now: () => number;
  readonly onDifference: (ms: number) => void;
}

export function createClock(ofMachine: () => number): Clock {
  let difference = 0;
  return {
    now: () => ofMachine() + difference,
    onDifference: (ms) => void (difference = ms),
  };
}
