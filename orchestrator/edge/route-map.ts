/** The routes that an edge goes by: by sandbox, by token, and with those who must know when one is removed. No I/O. */

import type { EdgeRoute, EdgeRoutingTable, RemovalListener, RemovalReason } from "./sandbox-lookup.ts";
import { TokenIndex } from "./token-index.ts";

export class RouteMap implements EdgeRoutingTable {
  readonly #routes = new Map<string, EdgeRoute>();
  readonly #tokens = new TokenIndex<EdgeRoute>();
  readonly #listeners = new Set<RemovalListener>();

  get size(): number {
    return this.#routes.size;
  }

  lookup(sandboxId: string): EdgeRoute | undefined {
    return this.#routes.get(sandboxId);
  }

  byToken(envdAccessToken: string): EdgeRoute | undefined {
    return this.#tokens.find(envdAccessToken);
  }

  /** In the order in which their sandboxes came; a route that is put meanwhile is among them. */
  running(): IterableIterator<EdgeRoute> {
    return this.#routes.values();
  }

  onRemove(listener: RemovalListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Replaces the sandbox's former route. The token of a sandbox changes when its seed is rotated. */
  put(route: EdgeRoute): void {
    const before = this.#routes.get(route.sandboxId);
    if (before !== undefined && before.envdAccessToken !== route.envdAccessToken) this.#tokens.delete(before);
    this.#routes.set(route.sandboxId, route);
    this.#tokens.set(route);
  }

  /** Removes the route in this tick; resolves when its streams have ended. No effect for another execution. */
  async remove(sandboxId: string, executionId: string, reason: RemovalReason): Promise<void> {
    const route = this.#routes.get(sandboxId);
    if (route === undefined || route.executionId !== executionId) return;
    this.#routes.delete(sandboxId);
    this.#tokens.delete(route);
    await Promise.all([...this.#listeners].map(async (listener) => listener(executionId, sandboxId, reason)));
  }
}
