/**
 * Calls of the platform's API, typed by its contract, of which nothing is there at run time: a call names its route as `GET /path`.
 * An answer that is no success becomes a Failure with the exit code that it means.
 */

import type { describedApi } from "../../shared/api/public.ts";
import type { Client } from "../../shared/http/contract.ts";
import { within } from "../../shared/program/deadline.ts";
import { EXIT, Failure, usage } from "../failure.ts";

type Routes = typeof describedApi;
type ByName = {
  readonly [N in keyof Routes as `${Routes[N]["method"]} ${Routes[N]["path"]}`]: Routes[N];
};

type Name = keyof ByName;
type Input<N extends Name> = Parameters<Client<ByName>[N]>[0];
export type Reply<N extends Name> = Awaited<ReturnType<Client<ByName>[N]>>;
/** One of the items of a route that answers a list. */
export type Item<N extends Name> = Reply<N> extends readonly (infer One)[] ? One : never;

export interface Connection {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

export interface Api {
  call<N extends Name>(name: N, input: Input<N>): Promise<Reply<N>>;
  /** Every item of a list that comes in pages, at most `most`. */
  all<N extends Name>(name: N, input: Input<N>, most?: number): Promise<readonly Item<N>[]>;
  /** Every page of an answer that has its list in a field. */
  pages<N extends Name>(name: N, input: Input<N>): AsyncIterable<Reply<N>>;
  /** The answer as it comes, for a stream. */
  stream<N extends Name>(name: N, input: Input<N>, headers: Readonly<Record<string, string>>): Promise<Response>;
}

export function createApi(connection: Connection): Api {
  function read(name: Name, input: AnyInput): Promise<{ readonly body: unknown; readonly next: string | null }> {
    return within(connection.timeoutMs, async (limit) => {
      const response = await send(connection, name, input, { signal: AbortSignal.any([limit, connection.signal]) });
      return { body: await bodyOf(response, connection), next: response.headers.get("x-next-token") };
    });
  }
  /** @param left how many items are still wanted; asked before each page */
  async function* pagesOf(name: Name, input: AnyInput, left: () => number): AsyncGenerator<unknown> {
    let token: string | null = null;
    do {
      const limit = Number.isFinite(left()) ? { limit: Math.max(1, Math.min(100, left())) } : {};
      const query = { ...input.query, ...limit, ...(token === null ? {} : { nextToken: token }) };
      const page = await read(name, { ...input, query });
      yield page.body;
      token = page.next;
    } while (token !== null && left() > 0);
  }
  return {
    call: async (name, input) => (await read(name, input)).body as never,
    async all(name, input, most = Number.POSITIVE_INFINITY) {
      if (most < 1) throw usage("--limit is at least 1");
      const items: unknown[] = [];
      for await (const page of pagesOf(name, input, () => most - items.length)) items.push(...(page as unknown[]));
      return items as never;
    },
    pages: (name, input) => pagesOf(name, input, () => Number.POSITIVE_INFINITY) as never,
    stream: (name, input, headers) => send(connection, name, input, { signal: connection.signal, headers }),
  };
}

interface More {
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

async function send({ url, headers, timeoutMs, signal }: Connection, name: Name, input: AnyInput, more: More) {
  const [method = "", path = ""] = name.split(" ");
  let response: Response;
  try {
    response = await fetch(`${url}${target(path, input)}`, {
      method,
      headers: {
        ...headers,
        ...(input.body === undefined ? {} : { "content-type": "application/json" }),
        ...more.headers,
      },
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      signal: more.signal,
      redirect: "error",
    });
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw unreached(url, cause, timeoutMs);
  }
  if (response.ok) return response;
  throw refusal(response.status, await response.text().catch(() => ""), response.headers.get("retry-after"));
}

function target(path: string, { params = {}, query = {} }: AnyInput): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search.toString()}`;
}

/** The JSON of an answer. Undefined: it has none. */
export async function bodyOf(
  response: Response,
  { url, timeoutMs, signal }: Omit<Connection, "headers">,
): Promise<unknown> {
  const text = await response.text().catch((cause: unknown) => {
    if (signal.aborted) throw signal.reason;
    throw unreached(url, cause, timeoutMs);
  });
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new Failure("the answer is not JSON", {
      cause,
      wayOut: "look whether the address is that of the platform's API",
    });
  }
}

/** What one can do about a failure of TLS, by its code. */
const WAYS_OF_TLS: readonly (readonly [RegExp, string])[] = [
  [
    /SELF_SIGNED_CERT|UNABLE_TO_(?:GET|VERIFY)/,
    "this machine does not know the authority of that certificate: NODE_EXTRA_CA_CERTS=FILE names its PEM file",
  ],
  [
    /ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)/,
    "that port does not speak TLS: the address begins with http:// there, or has another port",
  ],
  [/ERR_TLS_CERT_ALTNAME_INVALID/, "the certificate there is for other names: use one of them as the address"],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    "the certificate there is not valid now: look at its dates, and at the clock",
  ],
];

/** What a request to an address failed of, before there was an answer. */
export function unreached(url: string, cause: unknown, timeoutMs: number): Failure {
  if (cause instanceof DOMException && cause.name === "TimeoutError") {
    return new Failure(`${url} did not answer within ${timeoutMs / 1000} s`, {
      exitCode: EXIT.timedOut,
      cause,
      unreached: url,
      wayOut: "give it more time with --request-timeout",
    });
  }
  const reason = (cause as { readonly cause?: { readonly code?: string; readonly message?: string } }).cause;
  const ofTls = WAYS_OF_TLS.find(([code]) => code.test(reason?.code ?? ""))?.[1];
  return new Failure(`cannot reach ${url}: ${reason?.code ?? reason?.message ?? String(cause)}`, {
    cause,
    unreached: url,
    wayOut:
      ofTls ?? "look whether the platform runs there; SVC_API_URL and `svc context list` say which address is used",
  });
}

/** An answer that is no success, as the failure that it means. */
export function refusal(status: number, text: string, retryAfter: string | null = null): Failure {
  let message = text.slice(0, 2_000).trim();
  try {
    const body = JSON.parse(text) as { readonly message?: unknown } | null;
    if (typeof body?.message === "string") message = body.message;
  } catch {
    // A text that is not the API's is shown as it is.
  }
  const again = retryAfter === null ? {} : { wayOut: `try again in ${retryAfter} s` };
  return new Failure(message === "" ? `the platform answered ${status}` : message, {
    exitCode: exitCodeOf(status),
    ...(status === 401 ? { wayOut: "`svc auth whoami` shows which key is used and where it comes from" } : again),
  });
}

function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return EXIT.refused;
  if (status === 404 || status === 410) return EXIT.notFound;
  if (status === 409) return EXIT.conflict;
  return status === 408 || status === 504 ? EXIT.timedOut : EXIT.failed;
}
