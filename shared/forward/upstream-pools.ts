/**
 * Idle connections, kept by execution: a new start of a sandbox, or another sandbox on the same address, never gets an
 * old socket, and closing one execution never touches another (behaviours.md §5.4).
 */

import type { UpstreamConnection } from "./upstream-connection.ts";

const SWEEP_MS = 500;
const MAX_IDLE_PER_KEY = 64;

export class UpstreamPools {
  /** Execution → pool key → idle connections, most recently used last. */
  readonly #idle = new Map<string, Map<string, UpstreamConnection[]>>();
  /** Every connection of an execution, idle or busy. */
  readonly #open = new Map<string, Set<UpstreamConnection>>();
  readonly #sweeper: NodeJS.Timeout;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeper.unref();
  }

  /** Connections now open, for metrics and tests. */
  get size(): number {
    let size = 0;
    for (const connections of this.#open.values()) size += connections.size;
    return size;
  }

  /** Makes a fresh connection known; it is forgotten by itself when it closes. */
  add(executionId: string, connection: UpstreamConnection): void {
    let connections = this.#open.get(executionId);
    if (connections === undefined) {
      connections = new Set();
      this.#open.set(executionId, connections);
    }
    const known = connections;
    known.add(connection);
    connection.onGone = () => {
      known.delete(connection);
      if (known.size === 0 && this.#open.get(executionId) === known) this.#open.delete(executionId);
    };
  }

  take(executionId: string, key: string): UpstreamConnection | undefined {
    const idle = this.#idle.get(executionId)?.get(key);
    if (idle === undefined) return undefined;
    const now = this.#now();
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.usable && connection.idleUntil > now) return connection;
      connection.destroy();
    }
    return undefined;
  }

  give(executionId: string, key: string, connection: UpstreamConnection, idleMs: number): void {
    if (!connection.usable || this.#open.get(executionId)?.has(connection) !== true) {
      connection.destroy();
      return;
    }
    let keys = this.#idle.get(executionId);
    if (keys === undefined) {
      keys = new Map();
      this.#idle.set(executionId, keys);
    }
    let idle = keys.get(key);
    if (idle === undefined) {
      idle = [];
      keys.set(key, idle);
    }
    if (idle.length >= MAX_IDLE_PER_KEY) {
      connection.destroy();
      return;
    }
    connection.idleUntil = this.#now() + idleMs;
    idle.push(connection);
  }

  /** Breaks off every connection of an execution, idle or busy. */
  close(executionId: string): void {
    this.#idle.delete(executionId);
    const connections = this.#open.get(executionId);
    this.#open.delete(executionId);
    for (const connection of connections ?? []) connection.abort();
  }

  stop(): void {
    clearInterval(this.#sweeper);
    for (const executionId of this.#open.keys()) this.close(executionId);
  }

  #sweep(): void {
    const now = this.#now();
    for (const [executionId, keys] of this.#idle) {
      for (const [key, idle] of keys) {
        const kept = idle.filter((connection) => {
          if (connection.usable && connection.idleUntil > now) return true;
          connection.destroy();
          return false;
        });
        if (kept.length === 0) keys.delete(key);
        else if (kept.length < idle.length) keys.set(key, kept);
      }
      if (keys.size === 0) this.#idle.delete(executionId);
    }
  }
}
