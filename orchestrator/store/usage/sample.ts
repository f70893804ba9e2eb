/** What a project used in one step of time, as it is counted. Types and the sample of nothing. */

export interface Counters {
  readonly cpuMs: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** What the executions of a project used since the last sample, and use now. */
export interface Used extends Counters {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export interface Sample extends Used {
  readonly sandboxes: number;
  readonly starts: number;
}

export const NOTHING: Sample = {
  sandboxes: 0,
  starts: 0,
  cpuMs: 0,
  memoryBytes: 0,
  diskBytes: 0,
  sentBytes: 0,
  receivedBytes: 0,
};

/** A counter that is lower than before has begun again at 0, with its agent. */
export function since(before: Counters, after: Counters): Counters {
  const difference = (name: keyof Counters) => (after[name] >= before[name] ? after[name] - before[name] : after[name]);
  return {
    cpuMs: difference("cpuMs"),
    sentBytes: difference("sentBytes"),
    receivedBytes: difference("receivedBytes"),
  };
}

export function plus(one: Counters, other: Counters): Counters {
  return {
    cpuMs: one.cpuMs + other.cpuMs,
    sentBytes: one.sentBytes + other.sentBytes,
    receivedBytes: one.receivedBytes + other.receivedBytes,
  };
}

/** What is in use, without what is counted. */
export function gauges({ sandboxes, memoryBytes, diskBytes }: Sample): Sample {
  return { ...NOTHING, sandboxes, memoryBytes, diskBytes };
}
