/** Makes a typed client from a contract, over a keep-alive connection pool; error replies become the AppError they were. */

import { type Dispatcher, Pool } from "undici";
import { within } from "../program/deadline.ts";
import { traceHeader } from "../program/tracing/trace.ts";
import { reachFailure } from "../tls/failures.ts";
import type { Meeting } from "../tls/peers.ts";
import { connectorFor } from "./connections/meeting-connector.ts";
import type { CallOptions, Client, Contract, Route } from "./contract.ts";
import { AppError, fromBody } from "./errors.ts";

type Headers = Readonly<Record<string, string>>;

export interface ConnectOptions {
  /** For example `http://127.0.0.1:5010`. */
  readonly url: string;
  /** Names the other side in errors, for example `node n1`. */
  readonly name: string;
  /** A function is asked at each call, for tokens that change. */
  readonly headers?: Headers | (() => Headers);
  /** Time limit of a call that names none. */
  readonly timeoutMs?: number;
  /** Time limit of a new connection with its handshake, during which no call can be given up. */
  readonly connectMs?: number;
  /** How an `https` address is met. Absent: by its host name and the system's authorities. */
  readonly meeting?: Meeting | undefined;
}

export interface Connection<C extends Contract> {
  readonly call: Client<C>;
  close(): Promise<void>;
}

interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export function connect<const C extends Contract>(contract: C, options: ConnectOptions): Connection<C> {
  // Shorter than the servers' keep-alive, so that no server closes a pooled connection under a request.
  const pool = new Pool(options.url, {
    connections: 128,
    pipelining: 1,
    keepAliveTimeout: 60_000,
    // Without this limit the server's announced keep-alive, which is ten times longer, would count.
    keepAliveMaxTimeout: 60_000,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: connecting(options),
  });
  const call = Object.fromEntries(
    Object.entries(contract).map(([name, route]) => [
      name,
      (given: AnyInput, callOptions?: CallOptions) => request({ pool, route, options }, given, callOptions ?? {}),
    ]),
  ) as unknown as Client<C>;
  return { call, close: () => pool.destroy() };
}

interface CallTarget {
  readonly pool: Pool;
  readonly route: Route;
  readonly options: ConnectOptions;
}

function request(target: CallTarget, given: AnyInput, callOptions: CallOptions): Promise<unknown> {
  const limitMs = callOptions.timeoutMs ?? target.options.timeoutMs ?? 30_000;
  return within(limitMs, (limit) => requestUntil(limit, target, given, callOptions));
}

async function requestUntil(
  limit: AbortSignal,
  { pool, route, options }: CallTarget,
  given: AnyInput,
  callOptions: CallOptions,
): Promise<unknown> {
  const signal = callOptions.signal === undefined ? limit : AbortSignal.any([callOptions.signal, limit]);
  let response: Dispatcher.ResponseData;
  let text: string;
  try {
    response = await pool.request({
      method: route.method,
      path: pathFor(route, given),
      headers: {
        ...traceHeader(),
        ...headersOf(options),
        ...(given.body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: given.body === undefined ? null : JSON.stringify(given.body),
      signal,
    });
    text = await response.body.text();
  } catch (cause) {
    if (callOptions.signal?.aborted === true) throw cause;
    const why = options.url.startsWith("https:") ? reachFailure(cause, options.url) : undefined;
    const message = `${options.name} did not answer ${route.method} ${route.path}${why === undefined ? "" : `: ${why}`}`;
    throw new AppError("node_unreachable", message, { cause });
  }
  const body = parse(text);
  if (response.statusCode >= 400) throw fromBody(response.statusCode, body, options.name);
  return body;
}

function connecting({ meeting, connectMs }: ConnectOptions): NonNullable<Pool.Options["connect"]> {
  if (meeting !== undefined) return connectorFor(meeting, connectMs);
  return connectMs === undefined ? {} : { timeout: connectMs };
}

function headersOf({ headers }: ConnectOptions): Headers {
  return typeof headers === "function" ? headers() : (headers ?? {});
}

function pathFor(route: Route, { params = {}, query = {} }: AnyInput): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(text(params[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, text(value));
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

// The contract allows only scalar parameters.
function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
