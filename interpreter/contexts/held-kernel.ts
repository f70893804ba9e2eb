/** The kernel of one context: started when it is needed, and what was set in it. */

import type { Changes, Emit, Kernel, Launch, StartKernel } from "../kernels/kernel.ts";
import type { Sandbox } from "./sandbox.ts";
import { difference, type Variables } from "./variables.ts";

export interface HeldKernelDeps {
  readonly start: StartKernel;
  readonly launch: Launch;
  readonly sandbox: Sandbox;
}

interface Running {
  readonly kernel: Kernel;
  /** What was set in it since its start. */
  applied: Variables;
  /** Life of the sandbox in which its random numbers were seeded. */
  life: string;
}

export class HeldKernel {
  readonly #deps: HeldKernelDeps;
  #running: Promise<Running> | undefined;
  #current: Running | undefined;

  constructor(deps: HeldKernelDeps) {
    this.#deps = deps;
  }

  /** Starts the kernel unless it runs. @throws with the reason when it cannot start */
  async start(): Promise<void> {
    await this.#get();
  }

  async run(code: string, emit: Emit): Promise<void> {
    const { kernel } = await this.#get();
    await kernel.run(code, emit);
  }

  /** Sets exactly these variables beside those that the kernel was started with, and seeds it again in another life. */
  async prepare(wanted: Variables): Promise<void> {
    const running = await this.#get();
    const life = this.#deps.sandbox.life();
    const reseed = life !== running.life;
    const { set, remove } = difference(running.kernel.environment, running.applied, wanted);
    if (!reseed && remove.length === 0 && Object.keys(set).length === 0) return;
    const changes: Changes = { set, remove, cwd: null, reseed };
    await running.kernel.change(changes);
    running.applied = wanted;
    running.life = life;
  }

  /** After a run: only these variables stay set. Starts no kernel for it. */
  async takeBack(wanted: Variables): Promise<void> {
    if (this.#current !== undefined) await this.prepare(wanted);
  }

  /** Asks what runs to stop; kills the kernel when it still runs after its grace. Returns what calls that off. */
  interrupt(): () => void {
    const kernel = this.#current?.kernel;
    if (kernel === undefined) return () => undefined;
    kernel.interrupt();
    const timer = setTimeout(() => void kernel.stop(), kernel.graceMs);
    return () => clearTimeout(timer);
  }

  /** Ends the kernel, or the one that is just starting. The next use starts another one. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    this.#current = undefined;
    const started = await running?.catch(() => undefined);
    await started?.kernel.stop();
  }

  async #get(): Promise<Running> {
    this.#running ??= this.#start();
    const starting = this.#running;
    try {
      return await starting;
    } catch (error) {
      if (this.#running === starting) this.#running = undefined;
      throw error;
    }
  }

  async #start(): Promise<Running> {
    const { start, launch, sandbox } = this.#deps;
    const life = sandbox.life();
    const kernel = await start(launch);
    const running = { kernel, applied: {}, life };
    this.#current = running;
    void kernel.ended.then(() => {
      if (this.#current !== running) return;
      this.#current = undefined;
      this.#running = undefined;
    });
    return running;
  }
}
