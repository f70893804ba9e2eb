/**
 * Connections towards servers, by execution: a new start of a sandbox, or another sandbox on the same address, never gets
 * an old connection, and closing one execution never affects another.
 */

import type { Socket } from "node:net";
import { DialledAgent } from "../sockets/agents.ts";
import { cut } from "../sockets/cut.ts";
import type { NextHop } from "./forward-plan.ts";

/** For one next hop of one execution. */
export interface UpstreamAgents {
  readonly keeping: DialledAgent;
  readonly single: DialledAgent;
}

interface ExecutionConnections {
  readonly agents: Map<string, UpstreamAgents>;
  readonly open: Set<Socket>;
}

/** Next hops of one execution that are remembered without a connection. */
const MOST_EMPTY = 64;

export class Connections {
  readonly #executions = new Map<string, ExecutionConnections>();
  readonly #isActive: (executionId: string) => boolean;

  /** @param isActive whether a request of this execution is under way, which may be about to dial */
  constructor(isActive: (executionId: string) => boolean) {
    this.#isActive = isActive;
  }

  /** Connections now open, idle ones included. */
  get size(): number {
    let size = 0;
    for (const { open } of this.#executions.values()) size += open.size;
    return size;
  }

  agents(executionId: string, nextHop: NextHop): UpstreamAgents {
    const { agents } = this.#of(executionId);
    let found = agents.get(nextHop.key);
    if (found === undefined) {
      const common = {
        dial: (signal: AbortSignal) => nextHop.dial(signal),
        onOpen: (socket: Socket) => this.#hold(executionId, socket),
      };
      found = {
        keeping: new DialledAgent({ ...common, keeps: true }),
        single: new DialledAgent({ ...common, keeps: false }),
      };
      // Bounded: a visitor who tries every port while another request is under way must not fill the memory.
      if (agents.size >= MOST_EMPTY) dropEmpty(agents);
      agents.set(nextHop.key, found);
    }
    return found;
  }

  /** Next hops of the execution that are remembered. */
  hops(executionId: string): number {
    return this.#executions.get(executionId)?.agents.size ?? 0;
  }

  /** Deletes the entry of an execution without requests, unless one of its connections is still open. */
  settle(executionId: string): void {
    if (this.#executions.get(executionId)?.open.size === 0) this.#executions.delete(executionId);
  }

  /** Closes every connection of an execution: idle ones with FIN, busy ones with RST. */
  close(executionId: string): void {
    const execution = this.#executions.get(executionId);
    this.#executions.delete(executionId);
    // An idle connection ends in order: nothing is under way on it.
    for (const { keeping } of execution?.agents.values() ?? []) keeping.dropIdle(true);
    for (const socket of execution?.open ?? []) if (!socket.destroyed) cut(socket);
  }

  stop(): void {
    for (const executionId of this.#executions.keys()) this.close(executionId);
  }

  /** Closes every connection in order. */
  end(): void {
    for (const { open } of this.#executions.values()) for (const socket of open) socket.destroy();
  }

  #of(executionId: string): ExecutionConnections {
    let execution = this.#executions.get(executionId);
    if (execution === undefined) {
      execution = { agents: new Map(), open: new Set() };
      this.#executions.set(executionId, execution);
    }
    return execution;
  }

  #hold(executionId: string, socket: Socket): void {
    const { open } = this.#of(executionId);
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      if (!this.#isActive(executionId)) this.settle(executionId);
    });
  }
}

function dropEmpty(agents: Map<string, UpstreamAgents>): void {
  for (const [key, { keeping, single }] of agents) if (keeping.isEmpty && single.isEmpty) agents.delete(key);
}
