/**
 * The stream of routes to one edge program: everything first, then each change. The end of a sandbox waits for the edge, but no longer
 * than the edge could go by its routes alone.
 */

import { Readable } from "node:stream";
import { ACKNOWLEDGE_MS, type Line, type NodeLine, type Result, type RouteLine } from "../edge/following/messages.ts";
import type { EdgeRoute, RemovalReason } from "../edge/sandbox-lookup.ts";

/** Bytes that wait for a slow edge. One that lets more wait is cut off, and begins again. */
const MOST_WAITING = 16 * 1024 * 1024;
const LEAST_NODES = 64;

export interface FollowerStreamDeps {
  readonly routes: { running(): Iterable<EdgeRoute> };
  readonly nodeOf: (nodeId: string) => NodeLine | undefined;
  readonly hello: Extract<Line, { is: "hello" }>;
  /** The stream was cut off, and why. */
  readonly onCut: (reason: string) => void;
  readonly acknowledgeMs?: number;
  readonly mostWaiting?: number;
}

interface Waiting {
  readonly resolve: () => void;
  readonly timer: NodeJS.Timeout;
}

export class FollowerStream {
  readonly readable: Readable;
  readonly #deps: FollowerStreamDeps;
  readonly #acknowledgeMs: number;
  readonly #mostWaiting: number;
  /** What is left of the routes that were there at the beginning; undefined: all are sent. */
  #rest: Iterator<EdgeRoute> | undefined;
  /** The nodes as they were sent. */
  readonly #nodes = new Map<string, string>();
  /** With so many, those that were removed are forgotten. */
  #mostNodes = LEAST_NODES;
  readonly #waiting = new Map<number, Waiting>();
  #count = 0;
  #pongAt = Number.NEGATIVE_INFINITY;
  #isOpen = true;
  #hasLeft = false;

  constructor(deps: FollowerStreamDeps) {
    this.#deps = deps;
    this.#acknowledgeMs = deps.acknowledgeMs ?? ACKNOWLEDGE_MS;
    this.#mostWaiting = deps.mostWaiting ?? MOST_WAITING;
    this.readable = new Readable({ read: () => this.#pump(), highWaterMark: 64 * 1024 });
    this.readable.once("close", () => {
      this.#isOpen = false;
    });
    this.readable.on("error", () => undefined);
    this.#push(deps.hello);
    this.#rest = deps.routes.running()[Symbol.iterator]();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether the edge may still go by routes that it has. */
  get counts(): boolean {
    return this.#isOpen || this.#leftMs() > 0;
  }

  put(route: EdgeRoute): void {
    if (this.#isOpen) this.#route(route);
  }

  /** Resolves when the edge has ended the streams of the execution, or asks its node for each request by now. */
  removed(sandboxId: string, executionId: string, reason: RemovalReason): Promise<void> {
    if (!this.#isOpen) return this.#lapse();
    const number = ++this.#count;
    this.#push({ is: "removed", number, sandboxId, executionId, reason });
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(number);
        this.cut(`the edge did not acknowledge the end of sandbox ${sandboxId} within ${this.#acknowledgeMs} ms`);
        resolve();
      }, this.#acknowledgeMs);
      this.#waiting.set(number, { resolve, timer });
    });
  }

  done(number: number): void {
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(number);
    waiting.resolve();
  }

  pong(number: number): void {
    if (!this.#isOpen) return;
    this.#pongAt = performance.now();
    this.#push({ is: "pong", number });
  }

  answer(number: number, result: Result): void {
    if (this.#isOpen) this.#push({ is: "answer", number, result });
  }

  /** The edge has stopped, and serves nothing any more. */
  leave(): void {
    this.#hasLeft = true;
    this.#release();
    this.#isOpen = false;
    this.readable.destroy();
  }

  /** What waits for the edge goes on waiting, until the edge could not go by its routes any more. */
  cut(reason: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.readable.destroy();
    this.#deps.onCut(reason);
  }

  /** The orchestrator stops. */
  end(): void {
    this.#release();
    this.#isOpen = false;
    this.readable.push(null);
  }

  /** Nothing waits for the edge any more. */
  #release(): void {
    for (const { resolve, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      resolve();
    }
    this.#waiting.clear();
  }

  #pump(): void {
    while (this.#rest !== undefined) {
      const next = this.#rest.next();
      if (next.done === true) {
        this.#rest = undefined;
        this.#push({ is: "whole" });
      } else if (!this.#route(next.value)) return;
    }
  }

  /** False: the edge has to read first. */
  #route(route: EdgeRoute): boolean {
    const node = this.#deps.nodeOf(route.nodeId);
    // It was removed in this moment, and its sandboxes end.
    if (node === undefined) return true;
    const line = JSON.stringify(node);
    if (this.#nodes.get(route.nodeId) !== line) {
      if (this.#nodes.size >= this.#mostNodes) this.#forgetRemoved();
      this.#nodes.set(route.nodeId, line);
      this.#push(node);
    }
    return this.#push(lineOf(route));
  }

  #forgetRemoved(): void {
    for (const id of this.#nodes.keys()) if (this.#deps.nodeOf(id) === undefined) this.#nodes.delete(id);
    this.#mostNodes = Math.max(LEAST_NODES, 2 * this.#nodes.size);
  }

  #push(line: Line): boolean {
    if (!this.#isOpen) return false;
    const more = this.readable.push(`${JSON.stringify(line)}\n`);
    if (this.readable.readableLength > this.#mostWaiting) {
      this.cut(`the edge reads too slowly: ${this.readable.readableLength} bytes wait for it`);
    }
    return more;
  }

  #leftMs(): number {
    return this.#hasLeft ? 0 : Math.max(0, this.#pongAt + this.#acknowledgeMs - performance.now());
  }

  async #lapse(): Promise<void> {
    const ms = this.#leftMs();
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

function lineOf(route: EdgeRoute): RouteLine {
  const { sandboxId, executionId, state, held = false, nodeId, address, envdAccessToken, allowPublicTraffic } = route;
  const { trafficAccessToken, maskRequestHost, httpsPorts } = route;
  return {
    is: "route",
    sandboxId,
    executionId,
    state,
    held,
    nodeId,
    address,
    envdAccessToken,
    ...(trafficAccessToken === undefined ? {} : { trafficAccessToken }),
    allowPublicTraffic,
    ...(maskRequestHost === undefined ? {} : { maskRequestHost }),
    httpsPorts: [...httpsPorts],
  };
}
