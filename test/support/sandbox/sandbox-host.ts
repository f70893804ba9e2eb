/** Raw requests to one sandbox through the edge: plain HTTP on any port, and envd's RPCs in the Connect JSON codec. */

import { api, type Platform, type Reply, readReply } from "../platform/platform.ts";

export interface Target {
  readonly sandboxId: string;
  readonly envdAccessToken: string;
}

export interface PortCall {
  readonly method?: string;
  readonly port?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: RequestInit["body"];
}

export interface RpcCall {
  /** The user to send as `Authorization: Basic`, as the SDKs do for `user`. */
  readonly user?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The access token: the sandbox's own when absent, none when null. */
  readonly token?: string | null;
}

/** A frame of a Connect stream: a message, or the end with its error. */
export interface Frame {
  readonly end: boolean;
  readonly value: Record<string, unknown>;
}

const END_STREAM = 0b10;

/** Reads the access token of a sandbox made with the SDK, which does not show it. */
export async function targetOf(platform: Platform, sandboxId: string): Promise<Target> {
  const reply = await api(platform, "GET", `/sandboxes/${sandboxId}`);
  const detail = reply.json as { envdAccessToken?: string };
  if (detail.envdAccessToken === undefined) throw new Error(`no token in ${reply.text}`);
  return { sandboxId, envdAccessToken: detail.envdAccessToken };
}

/** Requests any path on any port, routed by header. `port` defaults to envd's. */
export function send(platform: Platform, sandboxId: string, path: string, call: PortCall = {}): Promise<Response> {
  return fetch(platform.sandboxUrl + path, {
    method: call.method ?? "GET",
    headers: {
      "e2b-sandbox-id": sandboxId,
      "e2b-sandbox-port": String(call.port ?? 49983),
      ...call.headers,
    },
    body: call.body ?? null,
    signal: AbortSignal.timeout(180_000),
  });
}

/** Calls a unary RPC; `method` is written as in `process.Process/List`. */
export async function unary(
  platform: Platform,
  target: Target,
  method: string,
  call: RpcCall & { readonly message: unknown },
): Promise<Reply> {
  const response = await send(platform, target.sandboxId, `/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", "connect-protocol-version": "1", ...rpcHeaders(target, call) },
    body: JSON.stringify(call.message),
  });
  return readReply(response);
}

/** Yields a server stream frame by frame; the last frame has `end: true`. Throws when the stream is cut. */
export async function* stream(
  platform: Platform,
  target: Target,
  method: string,
  call: RpcCall & { readonly message: unknown },
): AsyncGenerator<Frame> {
  const response = await send(platform, target.sandboxId, `/${method}`, {
    method: "POST",
    headers: {
      "content-type": "application/connect+json",
      "connect-protocol-version": "1",
      ...rpcHeaders(target, call),
    },
    body: new Uint8Array(frame(JSON.stringify(call.message))),
  });
  if (response.status !== 200 || response.body === null) {
    throw new Error(`${method} answered ${response.status}: ${await response.text()}`);
  }
  let pending = Buffer.alloc(0);
  for await (const chunk of response.body) {
    pending = Buffer.concat([pending, chunk as Uint8Array]);
    while (pending.length >= 5 && pending.length >= 5 + pending.readUInt32BE(1)) {
      const length = pending.readUInt32BE(1);
      const end = ((pending[0] ?? 0) & END_STREAM) !== 0;
      const value = JSON.parse(pending.subarray(5, 5 + length).toString("utf8")) as Record<string, unknown>;
      pending = pending.subarray(5 + length);
      yield { end, value };
      if (end) return;
    }
  }
  throw new Error(`${method} ended without an EndStream frame`);
}

/** Collects all frames of a stream. */
export async function frames(source: AsyncIterable<Frame>): Promise<readonly Frame[]> {
  const all: Frame[] = [];
  for await (const one of source) all.push(one);
  return all;
}

function basic(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString("base64")}`;
}

function rpcHeaders(target: Target, call: RpcCall): Record<string, string> {
  const token = call.token === undefined ? target.envdAccessToken : call.token;
  return {
    ...(token === null ? {} : { "x-access-token": token }),
    ...(call.user === undefined ? {} : { authorization: basic(call.user) }),
    ...call.headers,
  };
}

function frame(text: string): Buffer {
  const payload = Buffer.from(text, "utf8");
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}
