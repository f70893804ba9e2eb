/** A destination with an authority of its own, and the way of a sandbox's connection through `transform` to it. */

import { createServer as createHttp, type RequestListener, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import { connect, createServer, type Socket } from "node:net";
import { type SecureContext, connect as tlsConnect } from "node:tls";
import { onTestFinished } from "vitest";
import type { Carried, CarriedResult, TransformOptions } from "../../../agent/egress/carry/carried.ts";
import type { CertificateWithKey } from "../../../agent/egress/channel/messages.ts";
import { makeAuthority, makeLeaf, readSigner } from "../../../agent/egress/rewrite/certificates.ts";
import { transform } from "../../../agent/egress/rewrite/transform.ts";
import { openTrust } from "../../../agent/egress/rewrite/trust.ts";
import { listening } from "./listening.ts";

const DAY_MS = 86_400_000;
const period = () => ({ from: Date.now() - DAY_MS, until: Date.now() + DAY_MS });

/** The authorities of the destination and of the node; no client trusts both. */
const publicAuthority = await makeAuthority("test public", period());
export const nodeAuthority = await makeAuthority("test node", period());
const publicTrust = openTrust(publicAuthority.certificate)();

export interface Origin {
  readonly port: number;
  readonly server: Server;
  /** The number of connections accepted so far. */
  readonly connections: () => number;
}

export async function leafOf(
  hostname: string,
  when = period(),
  authority = publicAuthority,
): Promise<CertificateWithKey> {
  return makeLeaf(await readSigner(authority), hostname, when);
}

/** @param hostname undefined serves plain HTTP */
export async function startOrigin(
  hostname: string | undefined,
  answer: RequestListener,
  leaf?: CertificateWithKey,
): Promise<Origin> {
  const own = leaf ?? (hostname === undefined ? undefined : await leafOf(hostname));
  const server = own === undefined ? createHttp(answer) : createHttps({ cert: own.certificate, key: own.key }, answer);
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  const port = await listening(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port, server, connections: () => connections };
}

export interface Listening {
  readonly port: number;
  /** The fate of each connection, in the order in which they ended. */
  readonly ended: CarriedResult[];
  readonly asked: string[];
  /** The number of dials to the destination. */
  readonly dials: () => number;
  /** The number of accepted connections of clients. */
  readonly taken: () => number;
}

export interface ListenOptions {
  readonly hostname: string;
  readonly tls: boolean;
  /** The port of the destination, or a function that connects to it. */
  readonly to: number | (() => Promise<Socket>);
  readonly headers?: Record<string, string>;
  readonly secrets?: Record<string, string>;
  /** By default it finds values in `secrets`. */
  readonly resolve?: TransformOptions["resolve"];
  readonly allowPlainHttp?: boolean;
  readonly trust?: SecureContext;
  /** By default the port on which the listener listens. */
  readonly port?: number;
}

/** Accepts connections as the egress process does: it reads the first bytes, then hands the connection over. */
export async function listenTransformed(options: ListenOptions): Promise<Listening> {
  const { hostname, tls, to, headers = {}, secrets = {}, trust = publicTrust } = options;
  const ended: CarriedResult[] = [];
  const asked: string[] = [];
  const open = new Set<Carried>();
  let dials = 0;
  let taken = 0;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    taken += 1;
    socket.on("error", () => undefined);
    socket.once("data", (first: Buffer) => {
      socket.pause();
      const transformed = transform(socket, {
        hostname,
        tls,
        headers,
        ...(options.allowPlainHttp === undefined ? {} : { allowPlainHttp: options.allowPlainHttp }),
        first,
        trust,
        port: options.port ?? port,
        authority: nodeAuthority,
        connect: () => {
          dials += 1;
          return typeof to === "number" ? dial(to) : to();
        },
        resolve: (placeholder) => {
          asked.push(placeholder);
          if (options.resolve !== undefined) return options.resolve(placeholder);
          const value = secrets[placeholder];
          return Promise.resolve(value === undefined ? { problem: "there is no such value" } : { value });
        },
      });
      open.add(transformed);
      void transformed.closed.then((end) => {
        open.delete(transformed);
        ended.push(end);
      });
    });
    socket.resume();
  });
  const port = await listening(server);
  onTestFinished(() => {
    for (const transformed of open) transformed.destroy();
    server.close();
  });
  return { port, ended, asked, dials: () => dials, taken: () => taken };
}

export function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/**
 * Sends raw bytes and resolves to everything that comes back until the end. @param hostname undefined connects without TLS
 */
export async function exchangeRaw(port: number, hostname: string | undefined, bytes: string): Promise<string> {
  const plain = await dial(port);
  const socket =
    hostname === undefined ? plain : tlsConnect({ socket: plain, servername: hostname, ca: nodeAuthority.certificate });
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    // A reset is an end as well: a refused client may still have been sending.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.once("close", () => resolve(text));
    socket.once("end", () => socket.end());
    socket.write(bytes, "latin1");
  });
}
