/** Requests to the console's own API, which speaks for the cookie. Every failure is a `Failed` with all that the server said. */

import type { Static, TSchema } from "typebox";
import { Failed } from "./failed.ts";
import { foreignAnswer, foreignRefusal, isPage, whyUnanswered } from "./foreign.ts";
import { type ActRequest, notePerformed } from "./performed.ts";
import { operatorProject, sessionEnded, sessionProven } from "./session.ts";

export const API = "/console/api";

/** The answer of a route of a contract. */
export type Reply<R extends { readonly reply: TSchema }> = Static<R["reply"]>;

type Value = string | number | boolean | undefined;

interface Options {
  readonly query?: Readonly<Record<string, Value>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** @throws {Failed} */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const { query = {}, body, headers = {}, signal } = options;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const isRaw = body instanceof Blob || body instanceof Uint8Array;
  const project = operatorProject.value;
  const answer = await fetch(`${path}${search.size === 0 ? "" : `?${search.toString()}`}`, {
    method,
    headers: {
      ...(body === undefined || isRaw ? {} : { "content-type": "application/json" }),
      ...(project === undefined ? {} : { "x-team-id": project }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? (body as BodyInit) : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch(async (error: unknown) => {
    if (signal?.aborted === true) throw error;
    if (body instanceof Blob) await checkReadable(body);
    throw new Failed(await whyUnanswered(), { status: 0 });
  });
  if (answer.ok) {
    sessionProven();
    return answer;
  }
  throw await failureOf(answer);
}

/**
 * A browser tells no reason for a request that it has not sent. It reads no file that was changed, moved or deleted since it was
 * chosen, and no folder.
 * @throws {Error}
 */
async function checkReadable(body: Blob): Promise<void> {
  try {
    await body.slice(0, 1).arrayBuffer();
  } catch (cause) {
    const text = "The browser cannot read it: it is a folder, or was changed, moved or deleted since it was chosen.";
    throw new Error(`${text} Choose it again.`, { cause });
  }
}

async function failureOf(answer: Response): Promise<Failed> {
  const text = await answer.text();
  const said = parsed(text) as { message?: string; error_code?: string; code?: unknown } | null | undefined;
  const code = said?.error_code ?? (typeof said?.code === "string" ? said.code : undefined);
  // A proxy that wants a log-in of its own knows nothing of the session.
  if (answer.status === 401 && said?.message !== undefined) sessionEnded();
  const requestId = answer.headers.get("x-request-id");
  const unsaid = isOfSandbox(answer) ? text || `HTTP ${answer.status}` : foreignRefusal(answer.status, text);
  return new Failed(said?.message ?? unsaid, {
    status: answer.status,
    ...(code === undefined ? {} : { code }),
    ...(requestId === null ? {} : { requestId }),
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The console marks each answer of a sandbox as a file to store. A proxy marks none of its own pages so. */
function isOfSandbox({ headers }: Response): boolean {
  return headers.has("content-disposition");
}

/**
 * The answer of the platform, or of a sandbox.
 * @throws {Failed} something in front of the platform has answered with a page
 * @throws {Error} the sandbox has sent an answer that is not JSON
 */
export async function jsonOf<T>(answer: Response): Promise<T> {
  const text = await answer.text();
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    if (isOfSandbox(answer)) throw new Error("The sandbox has answered with something else than JSON.", { cause });
    throw new Failed(foreignAnswer(text), { status: 0 });
  }
}

/** @throws {Failed} */
export async function get<T>(path: string, query: Options["query"] = {}, signal?: AbortSignal): Promise<T> {
  return jsonOf<T>(await send("GET", `${API}${path}`, { query, signal }));
}

/** Undefined where the answer is empty. @throws {Failed} */
export async function act<T = void>(method: string, path: string, body?: unknown): Promise<T> {
  const text = await (await send(method, `${API}${path}`, { body })).text();
  if (isPage(text)) throw new Failed(foreignAnswer(text), { status: 0 });
  notePerformed({ method, path, body });
  return (text === "" ? undefined : parsed(text)) as T;
}

/** @throws {Failed} */
export function perform<T = void>({ method, path, body }: ActRequest): Promise<T> {
  return act<T>(method, path, body);
}

interface Pages<T> {
  readonly query?: Options["query"];
  /** Items of a page. */
  readonly limit?: number;
  /** Further pages are read while there are fewer items. */
  readonly most?: number;
  /** Gets what there is after each page. */
  readonly soFar?: (items: readonly T[]) => void;
}

/** All pages of a list. @throws {Failed} */
export async function pages<T>(
  path: string,
  signal: AbortSignal,
  { query = {}, limit = 100, most = Number.POSITIVE_INFINITY, soFar = () => undefined }: Pages<T> = {},
): Promise<T[]> {
  const items: T[] = [];
  let nextToken: string | undefined;
  do {
    const answer = await send("GET", `${API}${path}`, { query: { ...query, limit, nextToken }, signal });
    items.push(...(await jsonOf<T[]>(answer)));
    soFar(items);
    nextToken = answer.headers.get("x-next-token") ?? undefined;
  } while (nextToken !== undefined && items.length < most);
  return items;
}
