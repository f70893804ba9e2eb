/**
 * One attempt of a delivery over `node:http`. Every address is checked where it is dialled, so a name that changes its
 * address between check and connect cannot lead inside; redirects are not followed.
 */

import { type LookupAddress, lookup } from "node:dns";
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { defined } from "../../shared/defined.ts";
import type { TargetAddresses } from "./addresses.ts";
import { keptConnections, type ReceiverOptions } from "./connections.ts";
import { type ErrorClass, ForbiddenAddress, faultOfError, faultOfStatus } from "./faults.ts";
import { readRetryAfter } from "./schedule.ts";
import { addressIn } from "./target.ts";

export interface Sent {
  readonly httpStatus?: number;
  /** Undefined: delivered. */
  readonly errorClass?: ErrorClass;
  readonly error?: string;
  /** The beginning of the answer's body. */
  readonly response?: string;
  readonly retryAfterMs?: number;
  readonly durationMs: number;
}

export type Resolve = (name: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void;

export interface SendDeps {
  readonly addresses: TargetAddresses;
  readonly now: () => number;
  /** Limit of a whole attempt. */
  readonly timeoutMs: number;
  /** Tests name addresses of their own. */
  readonly resolve?: Resolve;
}

export interface DeliveryRequest {
  /** Letters of one webhook share connections. */
  readonly webhookId: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Send = (request: DeliveryRequest, signal: AbortSignal) => Promise<Sent>;

const MAX_RESPONSE_BYTES = 16 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** How long the body of an answer is waited for: its status has decided already. */
const BODY_MS = 1_000;

/** Rejects only when the signal aborts. */
export function createSend(deps: SendDeps): Send {
  const kept = keptConnections();
  const resolve: Resolve = deps.resolve ?? ((name, done) => lookup(name, { all: true, verbatim: true }, done));

  /** Every connection to a name goes through here. */
  const checkedLookup: LookupFunction = (name, { all, family }, done) => {
    resolve(name, (error, found) => {
      if (error !== null) {
        done(error, "", 0);
        return;
      }
      const wanted = found.filter((each) => (family !== 4 && family !== 6 ? true : each.family === family));
      const allowed = wanted.filter(({ address }) => deps.addresses.allows(address));
      const [first] = allowed;
      if (first === undefined) done(new ForbiddenAddress("the name has no address that may be a target"), "", 0);
      else if (all === true) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };

  /** Resolves when the answer's headers are there. */
  async function post(url: URL, body: string, options: ReceiverOptions): Promise<IncomingMessage> {
    const isHttps = url.protocol === "https:";
    const sent: { request?: ClientRequest } = {};
    const once = (agent: ReceiverOptions["agent"]) =>
      new Promise<IncomingMessage>((answered, failed) => {
        const request = (isHttps ? requestHttps : requestHttp)(url, { ...options, agent }, answered);
        sent.request = request;
        request.on("error", failed);
        // An informational answer that asks for another protocol is not taken.
        request.on("upgrade", (_answer, socket) => {
          socket.destroy();
          failed(new Error("the receiver changed the protocol"));
        });
        request.end(body);
      });
    try {
      return await once(isHttps ? kept.https : kept.http);
    } catch (error) {
      // The receiver may have ended a kept connection at the moment of its use.
      if (sent.request?.reusedSocket !== true || options.signal?.aborted === true) throw error;
      return once(false);
    }
  }

  async function attempt(request: DeliveryRequest, signal: AbortSignal): Promise<Omit<Sent, "durationMs">> {
    const url = new URL(request.url);
    const literal = addressIn(url);
    // An address in the URL is dialled without a look-up.
    if (literal !== undefined && !deps.addresses.allows(literal))
      throw new ForbiddenAddress("the address is not allowed");
    const answer = await post(url, request.body, {
      method: "POST",
      webhookId: request.webhookId,
      lookup: checkedLookup,
      maxHeaderSize: MAX_HEADER_BYTES,
      headers: {
        "content-type": "application/json; charset=utf-8",
        "content-length": Buffer.byteLength(request.body),
        "user-agent": "svc-webhooks/1",
        ...request.headers,
      },
      signal,
    });
    const status = answer.statusCode ?? 0;
    const response = await beginning(answer);
    const retryAfterMs = readRetryAfter(answer.headers["retry-after"], deps.now());
    return {
      httpStatus: status,
      response,
      ...faultOfStatus(status, answer.headers.location, url),
      ...defined({ retryAfterMs }),
    };
  }

  return async (request, signal) => {
    signal.throwIfAborted();
    const before = performance.now();
    const ending = new AbortController();
    const cut = () => ending.abort();
    let timedOut = false;
    const giveUp = () => {
      timedOut = true;
      cut();
    };
    let grace: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // A busy process reads the answers that are there before it gives up.
      grace = setImmediate(giveUp);
    }, deps.timeoutMs);
    signal.addEventListener("abort", cut, { once: true });
    try {
      return { ...(await attempt(request, ending.signal)), durationMs: performance.now() - before };
    } catch (reason) {
      signal.throwIfAborted();
      const durationMs = performance.now() - before;
      if (!timedOut) return { ...faultOfError(reason), durationMs };
      return { errorClass: "timeout", error: `the receiver did not answer within ${deps.timeoutMs} ms`, durationMs };
    } finally {
      clearTimeout(timer);
      clearImmediate(grace);
      signal.removeEventListener("abort", cut);
    }
  };
}

/** Reads at most `MAX_RESPONSE_BYTES` for at most `BODY_MS`. The connection of an answer that has more, or takes longer, ends. */
async function beginning(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => answer.destroy(), BODY_MS);
  try {
    for await (const chunk of answer) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size >= MAX_RESPONSE_BYTES) break;
    }
  } catch {
    // The status is known; a body that breaks off changes nothing.
  } finally {
    clearTimeout(timer);
    answer.destroy();
  }
  return Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES).toString("utf8");
}
