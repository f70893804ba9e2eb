/** Description of a route: one plain object from which validation, types, client, fakes and OpenAPI are derived. Types only. */

import type { Readable } from "node:stream";
import type { Static, TSchema } from "typebox";
import type { Scope } from "./scopes.ts";

/**
 * Who may call. `project` = API key, or bearer/admin with a team header; `team` = bearer/admin
 * with a team header, no API key; `volume` = the token of one volume.
 */
export type Access = "none" | "project" | "team" | "bearer" | "admin" | "node" | "volume";

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `{name}` marks a path parameter: exactly one segment, percent-decoded after routing. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly access: Access;
  /** The scope that an API key needs, where method and tag do not say it (`scopeOf`). */
  readonly scope?: Scope;
  readonly deprecated?: boolean;
  /** Answers 410 to every caller. */
  readonly removed?: true;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** The body may be absent or empty; the handler then sees `{}`. */
  readonly optionalBody?: boolean;
  /** The sender may be of a later version: fields of the body that this version does not know are left out, at any depth. */
  readonly ignoresLater?: true;
  /** Content type of a body that is a stream of bytes; such a route has no `body`. */
  readonly bytes?: string;
  /** Most bytes of the body; absent: the server's limit. */
  readonly maxBodyBytes?: number;
  /** Every answer, also a refusal, has `Cache-Control: no-store`. */
  readonly noStore?: true;
  /** The success status; a handler may choose another of `alsoStatus`. */
  readonly status: number;
  readonly alsoStatus?: readonly number[];
  readonly reply?: TSchema;
  /** Content type of a stream that a caller who accepts it gets in place of the reply; without a reply every caller. */
  readonly stream?: string;
  /** Documented error statuses, for OpenAPI. */
  readonly errors?: readonly number[];
}

export type Contract = Readonly<Record<string, Route>>;

type Part<R extends Route, K extends "params" | "query" | "body"> = R[K] extends TSchema ? Static<R[K]> : undefined;

export interface Input<R extends Route> {
  readonly params: Part<R, "params">;
  readonly query: Part<R, "query">;
  readonly body: Part<R, "body">;
}

type Reply<R extends Route> = R["reply"] extends TSchema ? Static<R["reply"]> : void;

/** The facts and functions that a handler gets beside its input. */
export interface Context<Caller> {
  readonly caller: Caller;
  /** Aborted when the caller disconnects before the reply is finished. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** Scheme and host that the caller's headers name for this program; only for URLs that go back to the caller. */
  readonly origin: string;
  /** A header of the request; of a repeated one the first. */
  readonly requestHeader: (name: string) => string | undefined;
  /** Replaces the success status. */
  readonly status: (code: number) => void;
  readonly header: (name: string, value: string) => void;
}

export type Handlers<C extends Contract, Caller = undefined> = {
  readonly [K in keyof C]: (input: Input<C[K]>, context: Context<Caller>) => Promise<Answer<C[K]>> | Answer<C[K]>;
};

type Answer<R extends Route> = Reply<R> | (R["stream"] extends string ? Readable : never);

type CallInput<R extends Route> = (R["params"] extends TSchema ? { params: Static<R["params"]> } : object) &
  (R["query"] extends TSchema ? { query?: Static<R["query"]> } : object) &
  (R["body"] extends TSchema
    ? R["optionalBody"] extends true
      ? { body?: Static<R["body"]> }
      : { body: Static<R["body"]> }
    : object);

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export type Client<C extends Contract> = {
  readonly [K in keyof C]: (input: CallInput<C[K]>, options?: CallOptions) => Promise<Reply<C[K]>>;
};

/** Returns the routes unchanged, with their literal types. */
export function contract<const C extends Contract>(routes: C): C {
  return routes;
}
