/** The one connection to the destination that a sandbox's connection has at a time: dialled on demand, then kept. */

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { AppError } from "../../../shared/http/errors.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";
import { answerFault } from "../../../shared/proxy/answer-fault.ts";
import { readDespiteFailedWrites } from "../../../shared/proxy/sending/patient.ts";
import { ConnectError } from "../destinations/connect-error.ts";
import type { Destination } from "./request-head.ts";

const CONNECT_LIMIT_MS = 30_000;
const HANDSHAKE_LIMIT_MS = 15_000;

/** The message is for people in the sandbox. */
export class UpstreamError extends Error {}

export interface UpstreamOptions extends Destination {
  /** A connected socket; its checks and limits are the caller's. */
  connect(): Promise<Socket>;
  readonly trust: SecureContext;
}

export class Upstream extends Agent {
  readonly #options: UpstreamOptions;
  readonly #sockets = new Set<Socket>();
  readonly #usedUp = new WeakSet<Duplex>();
  #ended = false;

  constructor(options: UpstreamOptions) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
    this.#options = options;
  }

  /** Node calls this for a request that finds no free connection. */
  override createConnection(_: ClientRequestArgs, done?: (error: Error | null, stream: Duplex) => void): undefined {
    // Node reads either the error or the stream, although its types require both.
    const answer = done as ((error: Error | null, stream?: Duplex) => void) | undefined;
    this.#dial().then(
      (socket) => answer?.(null, socket),
      (error: unknown) =>
        answer?.(error instanceof UpstreamError ? error : new UpstreamError(`the destination failed: ${why(error)}`)),
    );
  }

  /** Marks the connection: it carries no request after the current one. */
  useOnce(socket: Duplex): void {
    this.#usedUp.add(socket);
  }

  /** Node calls this when an answer has ended. */
  override keepSocketAlive(socket: Duplex): boolean {
    if (this.#usedUp.has(socket)) return false;
    // Node's types do not declare the returned value.
    const kept: unknown = super.keepSocketAlive(socket);
    return kept === true;
  }

  /** Includes connections that left the pool for an upgrade. */
  override destroy(): void {
    this.#ended = true;
    super.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #dial(): Promise<Socket> {
    const { hostname, tls, trust } = this.#options;
    const raw = this.#hold(await this.#open());
    raw.setNoDelay(true);
    if (raw.readableEnded) {
      // A proxy may close with its answer: the next user of the socket would wait for an end that has already come.
      raw.destroy();
      throw new UpstreamError(`${hostname} closed the connection`);
    }
    if (!tls) return readDespiteFailedWrites(raw);
    const secure = connectTls({
      socket: raw,
      servername: hostname,
      secureContext: trust,
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
    });
    return readDespiteFailedWrites(this.#hold(await handshake(secure, hostname)));
  }

  async #open(): Promise<Socket> {
    const { hostname } = this.#options;
    const dialled = this.#options.connect();
    try {
      return await withDeadline(dialled, CONNECT_LIMIT_MS, () => {
        throw new UpstreamError(`${hostname} did not answer in time`);
      });
    } catch (error) {
      dialled.then(
        (late) => late.destroy(),
        () => undefined,
      );
      throw error instanceof UpstreamError ? error : new UpstreamError(`${hostname} cannot be reached: ${why(error)}`);
    }
  }

  #hold<T extends Socket>(socket: T): T {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // An error of an idle connection is ignored.
    socket.on("error", () => undefined);
    // So that an upgraded connection can end in one direction.
    socket.allowHalfOpen = true;
    if (this.#ended) {
      socket.destroy();
      throw new UpstreamError("the sandbox's connection ended while the destination was being dialled");
    }
    return socket;
  }
}

function handshake(secure: TLSSocket, hostname: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const fail = (text: string) => {
      clearTimeout(timer);
      secure.on("error", () => undefined);
      secure.destroy();
      reject(new UpstreamError(text));
    };
    const timer = setTimeout(() => fail(`${hostname} did not finish the TLS handshake in time`), HANDSHAKE_LIMIT_MS);
    const failed = (error: unknown) => fail(tlsText(hostname, error));
    const closed = () => fail(`${hostname} closed the connection in the TLS handshake`);
    secure.once("error", failed);
    secure.once("close", closed);
    secure.once("secureConnect", () => {
      clearTimeout(timer);
      secure.off("error", failed);
      secure.off("close", closed);
      resolve(secure);
    });
  });
}

/** OpenSSL's names of what is wrong with a certificate, as Node passes them on. */
const CERTIFICATE =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_|PATH_LENGTH)/;

function tlsText(hostname: string, error: unknown): string {
  const { code = "", message = "" } = (error ?? {}) as { code?: string; message?: string };
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `the certificate of ${hostname} is for another name (${code})`;
  if (CERTIFICATE.test(code)) return `the certificate of ${hostname} is not trusted: ${message} (${code})`;
  return `the TLS handshake with ${hostname} failed: ${why(error)}`;
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  EHOSTUNREACH: "no route to it",
  ENETUNREACH: "no route to it",
  ENOTFOUND: "the name does not exist",
  EPIPE: "the connection was closed",
  ETIMEDOUT: "it did not answer in time",
};

/** What was wrong with the answer of a destination that was reached. */
export function whyNoAnswer(error: unknown): string {
  return answerFault(error) ?? why(error);
}

/** The part of an error that a sandbox may see: its code, and messages meant for callers. Others may name hosts. */
export function why(error: unknown): string {
  if (error instanceof AppError || error instanceof UpstreamError || error instanceof ConnectError)
    return error.message;
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return "it failed";
  const words = WORDS[code];
  return words === undefined ? code : `${words} (${code})`;
}
