/** What the server asks of every kernel, whatever language it runs and however it is reached. */

/** Mime type → source text of the JSON value, so that a float stays one. */
export type Bundle = ReadonlyMap<string, string>;

export type KernelEvent =
  | { readonly type: "count"; readonly count: number }
  /** `timestamp`: ISO 8601, of the kernel; absent: now. */
  | {
      readonly type: "output";
      readonly stream: "stdout" | "stderr";
      readonly text: string;
      readonly timestamp?: string;
    }
  | { readonly type: "result"; readonly bundle: Bundle; readonly main: boolean }
  | { readonly type: "error"; readonly name: string; readonly value: string; readonly traceback: string };

/** Takes one event. The kernel is not read on until the promise is fulfilled: a slow client slows its kernel. */
export type Emit = (event: KernelEvent) => Promise<void>;

/** In place of an event that is too large to be passed on. */
export function leftOut(error: unknown): KernelEvent {
  const why = error instanceof Error ? error.message : "unknown reason";
  return { type: "error", name: "OutputError", value: `output that is too large was left out: ${why}`, traceback: "" };
}

/** A silent change of the kernel's surroundings, which is no execution and has no output. */
export interface Changes {
  /** Variables to set. */
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
  /** Working directory to change to. */
  readonly cwd: string | null;
  /** Seeds the generators of random numbers again, because this memory may be a copy. */
  readonly reseed: boolean;
}

/** How a kernel's process ended. */
export interface KernelEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last of its own stderr. */
  readonly said: string;
}

/** The kernel's process ended before the answer. */
export class KernelEnded extends Error {
  override readonly name = "KernelEnded";

  constructor(end: KernelEnd) {
    super(reasonOf(end));
  }
}

const LONGEST_REASON = 300;

/** Why a kernel ended, for the client. */
function reasonOf({ code, signal, said }: KernelEnd): string {
  if (signal === "SIGKILL") return "the kernel was killed, probably because memory ran out";
  const how = signal === null ? `with exit code ${code ?? "unknown"}` : `by ${signal}`;
  const last = said.trimEnd().split("\n").at(-1)?.slice(0, LONGEST_REASON) ?? "";
  return `the kernel ended ${how}${last === "" ? "" : `: ${last}`}`;
}

export interface Kernel {
  /** Fulfilled when all events of the run were taken. One run or change at a time. @throws {KernelEnded} */
  run(code: string, emit: Emit): Promise<void>;
  /** @throws {KernelEnded}, Error with the kernel's reason */
  change(changes: Changes): Promise<void>;
  /** Asks the kernel to stop what it runs. */
  interrupt(): void;
  /** Time after an interrupt in which a run may end by itself, milliseconds. */
  readonly graceMs: number;
  /** Kills the kernel and its process group; fulfilled when the process is gone. */
  stop(): Promise<void>;
  readonly ended: Promise<KernelEnd>;
  /** The environment that the process was started with. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Resolves to the kernel when it answers; stops a kernel that does not. */
export async function onceReady<K extends Kernel & { ready(): Promise<void> }>(kernel: K): Promise<K> {
  try {
    await kernel.ready();
    return kernel;
  } catch (error) {
    await kernel.stop();
    throw error;
  }
}

/** Where and how a kernel starts. */
export interface Launch {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A directory that only this user can enter, for sockets and files of kernels; its path is short. */
  readonly runtime: string;
}

export type StartKernel = (launch: Launch) => Promise<Kernel>;
