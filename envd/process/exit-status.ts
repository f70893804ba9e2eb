/** Pure: the kernel's wait status in the words of the public protocol, which are Go's. */

/** Signal number → Go's word for it on Linux. */
const SIGNAL_WORDS: Readonly<Record<number, string>> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  4: "illegal instruction",
  5: "trace/breakpoint trap",
  6: "aborted",
  7: "bus error",
  8: "floating point exception",
  9: "killed",
  10: "user defined signal 1",
  11: "segmentation fault",
  12: "user defined signal 2",
  13: "broken pipe",
  14: "alarm clock",
  15: "terminated",
  16: "stack fault",
  24: "CPU time limit exceeded",
  25: "file size limit exceeded",
  26: "virtual timer expired",
  27: "profiling timer expired",
  29: "I/O possible",
  30: "power failure",
  31: "bad system call",
};

export interface ExitReport {
  /** -1 when a signal ended the process. */
  readonly exitCode: number;
  readonly exited: boolean;
  readonly status: string;
  /** Only when it did not end with 0. */
  readonly error?: string;
}

export function describeExit(waitStatus: number): ExitReport {
  const signal = waitStatus & 0x7f;
  if (signal === 0) {
    const exitCode = (waitStatus >> 8) & 0xff;
    const status = `exit status ${exitCode}`;
    return exitCode === 0 ? { exitCode, exited: true, status } : { exitCode, exited: true, status, error: status };
  }
  const dumped = waitStatus & 0x80 ? " (core dumped)" : "";
  const status = `signal: ${SIGNAL_WORDS[signal] ?? `signal ${signal}`}${dumped}`;
  return { exitCode: -1, exited: false, status, error: status };
}
