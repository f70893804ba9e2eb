/** The way from an edge program to one orchestrator: the stream of routes, and the calls beside it. */

import { Pool } from "undici";
import { connectorFor } from "../../../shared/http/connections/meeting-connector.ts";
import { fromBody } from "../../../shared/http/errors.ts";
import type { Meeting } from "../../../shared/tls/peers.ts";
import { edgeApi, type Said } from "./messages.ts";

const CONNECT_MS = 5_000;
const CALL_MS = 10_000;

export interface RouteSource {
  /** For the log. */
  readonly name: string;
  /** Resolves with the orchestrator's stream, which the signal cuts. */
  open(signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
  say(followerId: string, said: readonly Said[], signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface SourceOptions {
  readonly url: string;
  readonly headers: () => Readonly<Record<string, string>>;
  readonly meeting: Meeting | undefined;
}

export function routeSource({ url, headers, meeting }: SourceOptions): RouteSource {
  const pool = new Pool(url, {
    connections: 8,
    headersTimeout: CALL_MS,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    keepAliveMaxTimeout: 60_000,
    connect: meeting === undefined ? { timeout: CONNECT_MS } : connectorFor(meeting, CONNECT_MS),
  });
  return {
    name: url,
    async open(signal) {
      const { method, path } = edgeApi.follow;
      const { statusCode, body } = await pool.request({ method, path, headers: headers(), signal });
      if (statusCode === 200) return body;
      throw fromBody(statusCode, await body.json().catch(() => undefined), url);
    },
    async say(followerId, said, signal) {
      const { method, path } = edgeApi.say;
      const { statusCode, body } = await pool.request({
        method,
        path: path.replace("{followerId}", encodeURIComponent(followerId)),
        headers: { ...headers(), "content-type": "application/json" },
        body: JSON.stringify({ said }),
        signal,
      });
      if (statusCode >= 400) throw fromBody(statusCode, await body.json().catch(() => undefined), url);
      await body.dump();
    },
    close: () => pool.destroy(),
  };
}
