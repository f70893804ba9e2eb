/** One context: a kernel with its state, runs one after the other, and the variables of each run. */

import { randomUUID } from "node:crypto";
import { type Emit, KernelEnded, leftOut } from "../kernels/kernel.ts";
import type { HeldKernel } from "./held-kernel.ts";
import { Queue } from "./queue.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Variables } from "./variables.ts";

export interface Execution {
  readonly code: string;
  /** For this run only. */
  readonly variables: Variables;
  readonly accessToken: string | undefined;
  /** Aborted when the client is gone. */
  readonly left: AbortSignal;
}

/** The end of a run that was not the run's own. */
interface Ending {
  readonly name: string;
  readonly value: string;
}

/** Runs that may wait for one context: each holds a connection and its code. */
const MOST_QUEUED = 1_000;

export class Context {
  readonly id = randomUUID();
  readonly language: string;
  readonly cwd: string;
  readonly #kernel: HeldKernel;
  readonly #sandbox: Sandbox;
  readonly #queue = new Queue();
  #sandboxVariables: Variables = {};
  /** The run under way; `ending` is what it answers when its kernel is stopped on request. */
  #run: { ending?: Ending } | undefined;
  #removed = false;

  constructor(spec: {
    readonly language: string;
    readonly cwd: string;
    readonly kernel: HeldKernel;
    readonly sandbox: Sandbox;
  }) {
    this.language = spec.language;
    this.cwd = spec.cwd;
    this.#kernel = spec.kernel;
    this.#sandbox = spec.sandbox;
  }

  get isFull(): boolean {
    return this.#queue.length >= MOST_QUEUED;
  }

  async start(): Promise<void> {
    await this.#kernel.start();
  }

  /** Fulfilled when the run is over and all its events were taken; its failures are events. */
  async execute(execution: Execution, emit: Emit): Promise<void> {
    let finished: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => (finished = resolve));
    // The next run waits until the variables of this one are taken back, and this one's answer does not.
    const turn = this.#queue.run(async () => {
      if (execution.left.aborted) return;
      await this.#execute(execution, emit);
      finished();
      await this.#takeBack();
    });
    await Promise.race([answered, turn]);
  }

  /** Loses the state; a run that is under way ends with an error. */
  async restart(): Promise<void> {
    await this.#end({ name: "ContextRestarting", value: "Context was restarted" });
    await this.#kernel.start();
  }

  async remove(): Promise<void> {
    this.#removed = true;
    await this.#end({ name: "ContextRemoved", value: `Context ${this.id} was removed` });
  }

  async #end(ending: Ending): Promise<void> {
    if (this.#run !== undefined) this.#run.ending = ending;
    await this.#kernel.stop();
  }

  async #execute({ code, variables, accessToken, left }: Execution, emit: Emit): Promise<void> {
    const run: { ending?: Ending } = {};
    this.#run = run;
    let callOff: () => void = () => undefined;
    const abort = () => (callOff = this.#kernel.interrupt());
    /** @throws when the context was restarted or removed while the run was being prepared: it must not begin in the next kernel */
    const goesOn = () => {
      if (run.ending !== undefined) throw new Error(run.ending.value);
      return !left.aborted;
    };
    try {
      if (this.#removed) throw new Error(`Context ${this.id} was removed`);
      this.#sandboxVariables = (await this.#sandbox.variables(accessToken)) ?? this.#sandboxVariables;
      // Where the context was removed meanwhile, the next use of its kernel would start one that nothing ends.
      if (!goesOn()) return;
      await this.#kernel.prepare({ ...this.#sandboxVariables, ...variables });
      if (!goesOn()) return;
      left.addEventListener("abort", abort, { once: true });
      await this.#kernel.run(code, (event) =>
        emit(event).catch(async (error: unknown) => {
          // The kernel has sent what is no JSON: it leaves that out itself.
          if (error instanceof SyntaxError) throw error;
          await emit(leftOut(error));
        }),
      );
    } catch (error) {
      await emit({ type: "error", ...(run.ending ?? this.#failure(error)), traceback: "" });
    } finally {
      this.#run = undefined;
      left.removeEventListener("abort", abort);
      callOff();
    }
  }

  #failure(error: unknown): Ending {
    if (this.#removed) return { name: "ContextRemoved", value: `Context ${this.id} was removed` };
    if (error instanceof KernelEnded)
      return { name: "ContextRestarting", value: `Context was restarted: ${error.message}` };
    return { name: "KernelError", value: error instanceof Error ? error.message : "the kernel failed" };
  }

  async #takeBack(): Promise<void> {
    try {
      await this.#kernel.takeBack(this.#sandboxVariables);
    } catch {
      // The kernel ended; the next one starts without them.
    }
  }
}
