/** Undo steps, run in reverse order, once. The line that takes a resource is followed by `add`. */

import type { Log } from "./log.ts";

export class Teardown {
  readonly #log: Log;
  readonly #steps: { readonly name: string; readonly undo: () => unknown }[] = [];
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** After `run` has begun, `add` undoes at once: a resource taken late is released too. */
  add(name: string, undo: () => unknown): void {
    if (this.#running === undefined) this.#steps.push({ name, undo });
    else this.#running = this.#running.then(() => this.#undo(name, undo));
  }

  /** The resources have another owner now: drops every step. */
  release(): void {
    this.#steps.length = 0;
  }

  /** Runs every step, last first; a failing step is logged and does not prevent the others. */
  run(): Promise<void> {
    this.#running ??= this.#all();
    return this.#running;
  }

  async #all(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      await this.#undo(step.name, step.undo);
    }
  }

  async #undo(name: string, undo: () => unknown): Promise<void> {
    try {
      await undo();
    } catch (error) {
      this.#log.warn({ err: error, step: name }, "could not release a resource");
    }
  }
}
