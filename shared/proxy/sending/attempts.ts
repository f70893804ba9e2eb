/** The attempts of one request: by which next hop, on which kind of connection, and which one follows one that failed. */

import type { ClientRequest } from "node:http";
import type { ClientSide } from "../listening/client.ts";
import { type OutgoingHead, outgoingHead } from "../raw-headers.ts";
import type { DialledAgent } from "../sockets/agents.ts";
import { isRepeatable } from "./call.ts";
import type { Connections } from "./connections.ts";
import type { ForwardPlan, NextHop } from "./forward-plan.ts";

/** One request on one connection. */
export interface Attempt {
  readonly nextHop: NextHop;
  readonly agent: DialledAgent;
  readonly outgoing: OutgoingHead;
}

export class Attempts {
  readonly #connections: Connections;
  readonly #plan: ForwardPlan;
  readonly #client: ClientSide;
  /** Ends the dialling. Undefined for most requests, which find an open connection. */
  #dialling: AbortController | undefined;
  #hopIndex = 0;
  #repeated = false;

  constructor(connections: Connections, plan: ForwardPlan, client: ClientSide) {
    this.#connections = connections;
    this.#plan = plan;
    this.#client = client;
  }

  readonly dialSignal = (): AbortSignal => (this.#dialling ??= new AbortController()).signal;

  endDialling(): void {
    this.#dialling?.abort(new Error("the exchange has ended"));
  }

  /** Undefined when the plan has no next hop. @throws {UnforwardableError} */
  current(): Attempt | undefined {
    const { nextHops, edits, path, executionId } = this.#plan;
    const nextHop = nextHops[this.#hopIndex];
    if (nextHop === undefined) return undefined;
    const { request, upgrade } = this.#client;
    const { method = "GET", rawHeaders } = request;
    const hop = { added: nextHop.added, upgrade: upgrade?.protocol };
    const outgoing = outgoingHead({ method, path, rawHeaders }, edits, hop);
    const { keeping, single } = this.#connections.agents(executionId, nextHop);
    if (this.#repeated) keeping.dropIdle(true);
    const keeps = upgrade === undefined && (nextHop.ours || isRepeatable(request, outgoing));
    // A server that serves one connection at a time would not accept a new one while it holds an idle one.
    if (!keeps) keeping.dropIdle(false);
    return { nextHop, agent: keeps ? keeping : single, outgoing };
  }

  /** Whether another next hop is left, after one that cannot be dialled. */
  another(): boolean {
    if (this.#hopIndex + 1 >= this.#plan.nextHops.length) return false;
    this.#hopIndex++;
    return true;
  }

  /** Whether the server may have closed a kept connection just before the request was written: then it is made again, once. */
  again({ reusedSocket }: ClientRequest, { outgoing }: Attempt): boolean {
    if (!reusedSocket || this.#repeated || !isRepeatable(this.#client.request, outgoing)) return false;
    this.#repeated = true;
    return true;
  }

  /** A proxy that cannot be dialled says nothing of the server, unless the server itself was tried before. */
  knowsServer({ proxied }: NextHop): boolean {
    return !proxied || this.#hopIndex > 0;
  }
}
