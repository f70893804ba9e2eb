/** The answer to one run: lines as they come, a keepalive in silence, and no further than the client reads. */

import type { ServerResponse } from "node:http";
import type { KernelEvent } from "../kernels/kernel.ts";
import { END, KEEPALIVE, lineOf } from "./lines.ts";

/** Clients give up after 300 s without a byte, and proxies earlier. */
const KEEPALIVE_MS = 5_000;
/** A client that reads nothing for so long holds its context without need. */
const STALLED_MS = 3_600_000;

export class RunStream {
  readonly #response: ServerResponse;
  readonly #left = new AbortController();
  #keepalive: NodeJS.Timeout | undefined;

  /** Sends the headers at once: the client's time limit of the run begins with them. */
  constructor(response: ServerResponse) {
    this.#response = response;
    response.once("close", () => {
      clearTimeout(this.#keepalive);
      if (!response.writableFinished) this.#left.abort();
    });
    response.on("error", () => response.destroy());
    // The client left while its context was started: `close` does not come again, and no write would ever be taken.
    if (response.destroyed) {
      this.#left.abort();
      return;
    }
    response.writeHead(200, {
      "content-type": "application/x-ndjson",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
    this.#watchSilence();
  }

  /** Aborted when the client closed its connection before the end. */
  get left(): AbortSignal {
    return this.#left.signal;
  }

  /** Fulfilled when the client can take more; at once when it is gone. */
  async event(event: KernelEvent): Promise<void> {
    await this.#write(lineOf(event, () => new Date()));
  }

  end(): void {
    clearTimeout(this.#keepalive);
    if (this.#left.signal.aborted) return;
    this.#response.end(END);
  }

  async #write(line: string): Promise<void> {
    if (this.#left.signal.aborted) return;
    this.#watchSilence();
    if (this.#response.write(line) || this.#left.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const stalled = setTimeout(() => this.#response.destroy(), STALLED_MS);
      const done = () => {
        clearTimeout(stalled);
        this.#response.off("drain", done);
        this.#left.signal.removeEventListener("abort", done);
        resolve();
      };
      this.#response.once("drain", done);
      this.#left.signal.addEventListener("abort", done, { once: true });
    });
  }

  #watchSilence(): void {
    clearTimeout(this.#keepalive);
    this.#keepalive = setTimeout(() => {
      if (!this.#response.writableNeedDrain) this.#response.write(KEEPALIVE);
      this.#watchSilence();
    }, KEEPALIVE_MS);
  }
}
