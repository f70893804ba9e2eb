/** CONNECT through a SOCKS5 proxy (RFC 1928, 1929). The only user of `socks`, which checks neither names nor lengths. */

import type { Socket } from "node:net";
import { SocksClient } from "socks";
import type { EgressProxy } from "../../../shared/policy/egress-policy.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { addressNumber } from "../../../shared/policy/ranges.ts";
import { ConnectError } from "../destinations/connect-error.ts";

const LIMIT_MS = 30_000;
const MOST_CREDENTIAL_BYTES = 255;

export interface ConnectRequest {
  /** An IPv4 address, or a name in the spelling of `hostName`, which the proxy resolves. */
  readonly host: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

/** `socket` is connected to the proxy, and is the tunnel afterwards; destroyed when this rejects. */
export async function tunnel(socket: Socket, proxy: EgressProxy, destination: ConnectRequest): Promise<Socket> {
  const { host, port, signal } = destination;
  const { username, password } = proxy;
  const abort = () => socket.destroy();
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    if (addressNumber(host) === undefined && hostName(host) !== host) throw new ConnectError("not a name for a proxy");
    if (tooLong(username) || tooLong(password)) throw new ConnectError("credentials of the egress proxy are too long");
    const established = SocksClient.createConnection({
      command: "connect",
      existing_socket: socket,
      proxy: {
        host: proxy.host,
        port: proxy.port,
        type: 5,
        ...(username === undefined ? {} : { userId: username, password: password ?? "" }),
      },
      destination: { host, port },
      timeout: LIMIT_MS,
    });
    // The library waits for the close of a socket, and this one stays half open.
    socket.once("end", abort);
    const { remoteHost } = await established.catch((error: unknown) => {
      // The library's error holds the password.
      throw new ConnectError(`egress proxy: ${socksFailure(error)}`);
    });
    socket.off("end", abort);
    // The library leaves such an answer unread, and its rest would look like the destination's first bytes.
    if (remoteHost === undefined) throw new ConnectError("egress proxy: its answer has an address of an unknown type");
    await settled(socket);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Undoes two things that the library does: it emits the bytes after the proxy's answer as an event, and lets the socket
 * flow. Without this the next user of the socket could lose bytes, or its end.
 */
function settled(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new ConnectError("egress proxy: the connection closed"));
    const early: Buffer[] = [];
    const keep = (chunk: Buffer) => void early.push(chunk);
    socket.once("close", gone);
    socket.on("data", keep);
    socket.once("resume", () => {
      socket.pause();
      socket.off("data", keep).off("close", gone);
      if (early.length > 0) socket.unshift(Buffer.concat(early));
      // An explicitly paused socket would stay paused for an HTTP client. This resets it to the state of a new socket.
      const nothing = () => undefined;
      socket.on("readable", nothing).off("readable", nothing);
      setImmediate(resolve);
    });
  });
}

/** The library's texts, by their beginning or by the name of the proxy's answer (RFC 1928 §6). */
const FAILURES: readonly (readonly [RegExp, string])[] = [
  [/Authentication failed/i, "it refused the user name or the password"],
  [/no accepted authentication/i, "it wants another kind of authentication"],
  [/unknown authentication/i, "it wants an unknown kind of authentication"],
  [/NotAllowed/, "it does not allow the connection"],
  [/NetworkUnreachable/, "it finds no route to the destination's network"],
  [/HostUnreachable/, "it cannot reach the destination"],
  [/ConnectionRefused/, "the destination refused the connection"],
  [/TTLExpired/, "the destination did not answer it in time"],
  [/CommandNotSupported/, "it does not support outgoing connections"],
  [/AddressNotSupported/, "it does not support the destination's kind of address"],
  [/rejected connection/, "it refused the connection without a known reason"],
  [/timed out/i, "it did not answer in time"],
  [/Socket closed|ECONNRESET|EPIPE/i, "it closed the connection"],
  [/invalid|version/i, "its answer is not SOCKS5"],
];

function socksFailure(error: unknown): string {
  const text = error instanceof Error ? error.message : "";
  return FAILURES.find(([pattern]) => pattern.test(text))?.[1] ?? (text === "" ? "it failed" : text);
}

function tooLong(text: string | undefined): boolean {
  return text !== undefined && Buffer.byteLength(text) > MOST_CREDENTIAL_BYTES;
}
