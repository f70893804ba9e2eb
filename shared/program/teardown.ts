/** Undo steps, run backwards, once. The line that takes something is followed by `add`. */

import type { Log } from "./log.ts";

export class Teardown {
  readonly #log: Log;
  readonly #steps: { readonly name: string; readonly undo: () => unknown }[] = [];
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adding after `run` has begun undoes at once: what was taken late is still given back. */
  add(name: string, undo: () => unknown): void {
    if (this.#running === undefined) this.#steps.push({ name, undo });
    else this.#running = this.#running.then(() => this.#undo(name, undo));
  }

  /** What was built now has another owner: forget every step. */
  release(): void {
    this.#steps.length = 0;
  }

  /** Runs every step, last first; a failing step is logged and does not keep the others from running. */
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
      this.#log.warn({ err: error, step: name }, "teardown step failed");
    }
  }
}
