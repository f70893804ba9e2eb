/** A failure that ends the command, with its exit code. The message may hold text of the API or of a sandbox: `main.ts` escapes it. */

export const EXIT = {
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  conflict: 5,
  /** `doctor` itself failed: it says nothing of the machine. */
  crashed: 70,
  timedOut: 124,
  interrupted: 130,
} as const;

export class Failure extends Error {
  readonly exitCode: number;
  /** What the user can do. */
  readonly wayOut: string | undefined;
  /** The address that gave no answer. */
  readonly unreached: string | undefined;

  constructor(message: string, more: { exitCode?: number; wayOut?: string; unreached?: string; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "Failure";
    this.exitCode = more.exitCode ?? EXIT.failed;
    this.wayOut = more.wayOut;
    this.unreached = more.unreached;
  }
}

export function usage(message: string, wayOut?: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, ...(wayOut === undefined ? {} : { wayOut }) });
}
