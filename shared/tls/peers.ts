/**
 * TLS between machines of the platform: both sides show a certificate of its authority, and each looks for the name that
 * it expects in the other's. The options are for `node:tls`, `node:https` and undici alike.
 */

import type { Socket } from "node:net";
import type {
  ConnectionOptions,
  PeerCertificate,
  SecureContextOptions,
  TLSSocket,
  TlsOptions,
  Server as TlsServer,
} from "node:tls";
import type { Credentials } from "./credentials.ts";
import type { LiveCredentials } from "./live.ts";
import { nameIn } from "./names.ts";

const HANDSHAKE_MS = 10_000;

/** Both programs are ours, so there is no older version to talk to. */
const VERSION = { minVersion: "TLSv1.3" } as const;

/** Whom a connection is made to, and as whom. */
export interface Meeting {
  /** Only an authority: the caller shows no certificate. */
  readonly credentials: { readonly current: Pick<Credentials, "authority"> & Partial<Credentials> };
  /** The name that the other side's certificate must have. */
  readonly expects: string;
}

/** For a connection to the peer; a failed check destroys it before a byte of the request is sent. */
export function clientOptions({ credentials, expects }: Meeting): ConnectionOptions {
  return {
    ...shown(credentials.current),
    ...VERSION,
    // Names in certificates are URIs: there is no host name to send.
    servername: "",
    checkServerIdentity: (host: string, { subjectaltname }: PeerCertificate) =>
      wrongName(nameIn(subjectaltname), expects, host),
  };
}

function wrongName(name: string | undefined, expects: string, host: string): Error | undefined {
  if (name === expects) return undefined;
  const found = name ?? "nobody that the platform names";
  return Object.assign(new Error(`the certificate at ${host === "" ? "this address" : host} is of ${found}`), {
    code: "ERR_TLS_CERT_ALTNAME_INVALID",
    found,
    expects,
  });
}

/** A server's side: what it shows, and whom it lets in. */
export interface Door {
  readonly credentials: LiveCredentials;
  /** @param name undefined: the client has shown no certificate of the platform's authority */
  readonly admits: (name: string | undefined) => boolean;
}

export function serverOptions({ credentials, admits }: Door): TlsOptions {
  return {
    ...shownByServer(credentials.current),
    ...VERSION,
    requestCert: true,
    rejectUnauthorized: !admits(undefined),
    handshakeTimeout: HANDSHAKE_MS,
    // A resumed session would be of the certificate that its client had before.
    sessionTimeout: 1,
  };
}

const refused = new WeakSet<Socket>();

/** A request on such a connection must be dropped: it may have arrived with the end of the handshake, before the connection was closed. */
export function isRefused(socket: Socket): boolean {
  return refused.has(socket);
}

/**
 * Closes connections of clients that the door does not admit (`isRefused`), and lets the server show each
 * renewed certificate from the next connection on.
 */
export function guard(server: TlsServer, { credentials, admits }: Door): void {
  server.on("secureConnection", (socket) => {
    if (admits(nameOf(socket))) return;
    refused.add(socket);
    socket.destroy();
  });
  const forget = credentials.onReplaced((next) => server.setSecureContext({ ...shownByServer(next), ...VERSION }));
  server.once("close", forget);
}

/** The name that the client has proved; undefined: it showed no certificate, or none of the platform's authority. */
export function nameOf(socket: TLSSocket): string | undefined {
  return socket.authorized ? nameIn(socket.getPeerCertificate().subjectaltname) : undefined;
}

function shown({ authority, certificate, key }: Meeting["credentials"]["current"]): SecureContextOptions {
  return { ca: authority, ...(certificate === undefined || key === undefined ? {} : { cert: certificate, key }) };
}

/** With the authority behind the certificate, which a machine that joins reads from the handshake. */
function shownByServer({ authority, certificate, key }: Credentials): SecureContextOptions {
  return { ca: authority, cert: `${certificate}${authority}`, key };
}
