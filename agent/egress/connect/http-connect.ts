/** CONNECT through an HTTP proxy (RFC 9110 §9.3.6). Its answer is untrusted: bounded, and read no further than its head. */

import type { Socket } from "node:net";
import type { CompanyProxy } from "../channel/messages.ts";
import { ConnectError } from "../destinations/connect-error.ts";

const MOST_HEAD_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";
const AUTHENTICATION_REQUIRED = "407";
/** Of authentication, in one message. */
const MOST_KINDS = 4;

/** `socket` is connected to the proxy, and is the tunnel afterwards, paused; destroyed when this rejects. */
export async function connectTunnel(
  socket: Socket,
  { authorization }: CompanyProxy,
  { host, port, signal }: { readonly host: string; readonly port: number; readonly signal: AbortSignal },
): Promise<Socket> {
  const abort = () => socket.destroy();
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    const credentials = authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
    socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n${credentials}\r\n`);
    const { head, rest } = await readHead(socket);
    const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(head)?.[1];
    if (status === undefined) throw new ConnectError("the company's proxy did not answer in HTTP");
    if (!status.startsWith("2"))
      throw new ConnectError(
        `the company's proxy refused the connection with status ${status}${why(status, head, credentials)}`,
      );
    if (rest.length > 0) socket.unshift(rest);
    // Node settles the state of a socket whose listeners of `readable` are gone at its next turn.
    await new Promise((resolve) => setImmediate(resolve));
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** What the operator has to do about a proxy that wants to know who asks. */
function why(status: string, head: string, credentials: string): string {
  if (status !== AUTHENTICATION_REQUIRED) return "";
  const kinds = [...head.matchAll(/^proxy-authenticate:[ \t]*([\w-]{1,32})/gim)].map(([, kind = ""]) => kind);
  if (kinds.length > 0 && !/^proxy-authenticate:.*\bbasic\b/im.test(head))
    return `: it wants ${kinds.slice(0, MOST_KINDS).join(" or ")}, and only a user name and a password are sent`;
  return `: it ${credentials === "" ? "wants" : "refused"} the user name and the password of SVC_SANDBOX_HTTPS_PROXY`;
}

function readHead(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const settle = (act: () => void) => {
      socket.off("readable", read).off("close", gone).off("end", gone);
      act();
    };
    const gone = () => settle(() => reject(new ConnectError("the company's proxy closed the connection")));
    // Reads and does not let the socket flow: its next user could lose bytes otherwise.
    const read = () => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        bytes = Buffer.concat([bytes, chunk]);
        const end = bytes.indexOf(HEAD_END);
        if (end >= 0) {
          const rest = bytes.subarray(end + HEAD_END.length);
          return settle(() => resolve({ head: bytes.toString("latin1", 0, end), rest }));
        }
        if (bytes.length > MOST_HEAD_BYTES)
          return settle(() => reject(new ConnectError("the answer of the company's proxy is too long")));
      }
    };
    socket.on("readable", read).once("close", gone).once("end", gone);
  });
}
