/** Every exchange under way and every connection kept, by execution: begins them, counts them, ends them. */

import type { StreamError } from "../connect-envelope.ts";
import type { ClientSide } from "../listening/client.ts";
import { Connections } from "./connections.ts";
import { Exchange, type ExchangeHost } from "./exchange.ts";
import type { ForwardPlan } from "./forward-plan.ts";

/** A kill waits this long for a client to take the last frame. */
const END_LIMIT_MS = 500;

export interface ForwarderOptions {
  /** How long a cut Connect stream waits to learn whether its sandbox was killed, milliseconds. */
  readonly lossGraceMs: number;
}

export class Forwarder implements ExchangeHost {
  readonly connections = new Connections((executionId) => this.#exchanges.has(executionId));
  readonly lossGraceMs: number;
  readonly #exchanges = new Map<string, Set<Exchange>>();

  constructor(options: ForwarderOptions) {
    this.lossGraceMs = options.lossGraceMs;
  }

  /** Exchanges and upgraded connections of an execution now under way. */
  active(executionId: string): number {
    return this.#exchanges.get(executionId)?.size ?? 0;
  }

  get activeTotal(): number {
    let total = 0;
    for (const exchanges of this.#exchanges.values()) total += exchanges.size;
    return total;
  }

  forward(plan: ForwardPlan, client: ClientSide): void {
    const exchange = new Exchange(this, plan, client);
    let exchanges = this.#exchanges.get(plan.executionId);
    if (exchanges === undefined) {
      exchanges = new Set();
      this.#exchanges.set(plan.executionId, exchanges);
    }
    exchanges.add(exchange);
    exchange.start();
  }

  onDone(exchange: Exchange): void {
    const { executionId } = exchange.plan;
    const exchanges = this.#exchanges.get(executionId);
    exchanges?.delete(exchange);
    if (exchanges?.size !== 0) return;
    // Deletes the entry now: no other part counts executions, so an idle entry would stay for ever.
    this.#exchanges.delete(executionId);
    this.connections.settle(executionId);
  }

  /** Ends all traffic of an execution; resolves when its clients know, within a bounded time. */
  async close(executionId: string, error: StreamError): Promise<void> {
    const exchanges = [...(this.#exchanges.get(executionId) ?? [])];
    const endings = exchanges.map((exchange) => exchange.end(error, END_LIMIT_MS));
    this.connections.close(executionId);
    await Promise.all(endings);
  }

  async stop(reason: StreamError): Promise<void> {
    const closing: Promise<void>[] = [];
    for (const executionId of this.#exchanges.keys()) closing.push(this.close(executionId, reason));
    await Promise.all(closing);
    this.connections.stop();
  }
}
