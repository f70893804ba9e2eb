/** Connections to the destination: dialled, and verified where they speak TLS. What went wrong is said in words. */

import type { Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { AppError } from "../../../shared/http/errors.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";
import { readDespiteFailedWrites } from "../../../shared/proxy/sockets/patient.ts";
import { ConnectError } from "../destinations/connect-error.ts";
import type { Destination } from "./request-head.ts";

const CONNECT_LIMIT_MS = 30_000;
const HANDSHAKE_LIMIT_MS = 15_000;

/** The message is for people in the sandbox. */
export class UpstreamError extends Error {}

export interface UpstreamOptions extends Destination {
  /** A connected socket; its checks and limits are the caller's. */
  readonly connect: () => Promise<Socket>;
  readonly trust: SecureContext;
}

/** Opens a verified connection to the destination. @throws {UpstreamError} */
export async function dialDestination(options: UpstreamOptions, signal: AbortSignal): Promise<Socket> {
  const { hostname, tls, trust } = options;
  const raw = held(await open(options));
  const abandon = () => raw.destroy();
  signal.addEventListener("abort", abandon);
  try {
    if (signal.aborted) {
      raw.destroy();
      throw new UpstreamError("the sandbox's connection ended while the destination was being dialled");
    }
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
    return readDespiteFailedWrites(held(await handshake(secure, hostname)));
  } finally {
    signal.removeEventListener("abort", abandon);
  }
}

async function open({ hostname, connect }: UpstreamOptions): Promise<Socket> {
  const dialled = connect();
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

function held<T extends Socket>(socket: T): T {
  // An error of an idle connection is ignored.
  socket.on("error", () => undefined);
  // So that an upgraded connection can end in one direction.
  socket.allowHalfOpen = true;
  return socket;
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
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "it offers no version of TLS from 1.2 on",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "it offers no version of TLS from 1.2 on",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS",
  ETIMEDOUT: "it did not answer in time",
};

/** The part of an error that a sandbox may see: its code, and messages meant for callers. Others may name hosts. */
export function why(error: unknown): string {
  if (error instanceof AppError || error instanceof UpstreamError || error instanceof ConnectError)
    return error.message;
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return "it failed";
  const words = WORDS[code];
  return words === undefined ? code : `${words} (${code})`;
}
