/**
 * For test files that share a process: a file fails itself when it leaves something behind that the next file could notice.
 * It compares the environment, the working directory, the file mode mask, fake timers and listeners of the process.
 */

import { afterAll, beforeAll, expect, vi } from "vitest";

interface Traces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly umask: number;
  readonly fakeTimers: boolean;
  readonly listeners: Readonly<Record<string, number>>;
}

/** A leftover listener for one of these events would hide a failure of the next file. */
const EVENTS = ["uncaughtException", "unhandledRejection", "SIGINT", "SIGTERM"];

let before: Traces;

beforeAll(() => {
  before = traces();
});

afterAll(() => {
  expect(traces(), "what a file of tests leaves in the process it shares").toEqual(before);
});

function traces(): Traces {
  return {
    environment: { ...process.env },
    workingDirectory: process.cwd(),
    umask: process.umask(),
    fakeTimers: vi.isFakeTimers(),
    listeners: Object.fromEntries(EVENTS.map((event) => [event, process.listenerCount(event)])),
  };
}
