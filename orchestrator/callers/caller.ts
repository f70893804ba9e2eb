/**
 * Who makes the request under way. Authentication identifies the caller; the server runs the handler for it; work that the
 * handler starts, also in the background, reads it with `currentCaller`.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { plainAddress } from "../../shared/http/connections/client-address.ts";

export interface Caller {
  /** `open`: the caller has shown no right credentials. `metrics`: the program that collects metrics has called. */
  readonly kind: "key" | "admin" | "person" | "node" | "metrics" | "open";
  readonly keyId?: string;
  /** The API key with its middle left out, as lists of keys show it; of a person the name. */
  readonly mask?: string;
  /** Of somebody who has logged in to the console by name: the subject that the provider of log-ins gives. */
  readonly personId?: string;
  readonly nodeId?: string;
  /** The project that the request is about: the key's own, or the one that an operator names. */
  readonly projectId?: string;
  /** The client's address, behind the proxies that are trusted. */
  readonly address: string;
  /** Made by the server, or the client's own when it has the form of one: clients can repeat an id. */
  readonly requestId: string;
}

type Identified = Omit<Caller, "address" | "requestId">;

/** The parts of a request that this file reads. */
interface RequestFacts {
  readonly id: string;
  readonly ip: string;
}

const identified = new WeakMap<RequestFacts, Identified>();
const callers = new AsyncLocalStorage<Caller>();

/** Called by authentication as soon as the credentials are known to be right. */
export function identify(request: RequestFacts, who: Identified): void {
  identified.set(request, who);
}

export function callerOf(request: RequestFacts): Caller {
  const who = identified.get(request) ?? { kind: "open" };
  return { ...who, address: plainAddress(request.ip), requestId: request.id };
}

export function runAs<T>(caller: Caller, work: () => T): T {
  return callers.run(caller, work);
}

/** Undefined: the platform works by itself. Work that continues after its request still sees the request's caller. */
export function currentCaller(): Caller | undefined {
  return callers.getStore();
}

/** @param key a valid API key */
export function maskOf(key: string): string {
  const start = key.indexOf("_") + 1;
  return `${key.slice(0, start + 2)}…${key.slice(-4)}`;
}
