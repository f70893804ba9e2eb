/**
 * Connections to receivers. One is kept for a few seconds for the next delivery of the same webhook, and for no other: a receiver
 * that answers more than it was asked can only confuse its own deliveries. Age ends it, so that a name is resolved again.
 */

import { Agent as HttpAgent, type RequestOptions } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Duplex } from "node:stream";

export interface ReceiverOptions extends RequestOptions {
  readonly webhookId: string;
}

/** Less than the time for which common servers keep a connection that nobody uses. */
const IDLE_MS = 4_000;
const MAX_AGE_MS = 60_000;
/** Of one webhook: as many as it has attempts at a time. */
const IDLE_CONNECTIONS = 8;

const KEEPING = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_CONNECTIONS } as const;

class KeepingHttp extends HttpAgent {
  readonly #isYoung = ageLimit();

  override getName(options?: Partial<ReceiverOptions>): string {
    return `${super.getName(options)}:${options?.webhookId ?? ""}`;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return this.#isYoung(socket) && (super.keepSocketAlive(socket) as unknown as boolean);
  }
}

class KeepingHttps extends HttpsAgent {
  readonly #isYoung = ageLimit();

  override getName(options?: Partial<ReceiverOptions>): string {
    return `${super.getName(options)}:${options?.webhookId ?? ""}`;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return this.#isYoung(socket) && (super.keepSocketAlive(socket) as unknown as boolean);
  }
}

export function keptConnections(): { readonly http: HttpAgent; readonly https: HttpsAgent } {
  return { http: new KeepingHttp(KEEPING), https: new KeepingHttps(KEEPING) };
}

/** Counts a connection's age from the end of its first attempt. */
function ageLimit(): (socket: Duplex) => boolean {
  const firstUse = new WeakMap<Duplex, number>();
  return (socket) => {
    const at = performance.now();
    const since = firstUse.get(socket) ?? at;
    firstUse.set(socket, since);
    return at - since < MAX_AGE_MS;
  };
}
