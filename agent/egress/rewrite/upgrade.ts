/** Requests that switch protocols, WebSocket above all: sends the rule's headers, then relays bytes. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { plainHead } from "../../../shared/proxy/listening/hand-back.ts";
import { headText, switchingHeaders } from "../../../shared/proxy/raw-headers.ts";
import { endTogether } from "../../../shared/proxy/sending/end-together.ts";
import { answerRaw, answerRefusal, refusalOf } from "./answer.ts";
import { clientServer, readRequests } from "./client-server.ts";
import { prepare, type Rewriting, relayInformation, send } from "./exchange.ts";
import { relayAnswer } from "./relay-answer.ts";
import { Refusal, tokens, valuesOf } from "./request-head.ts";

/** Largest body of a request to upgrade; Docker's clients send a short one. */
const MOST_BODY_BYTES = 64 * 1024;
/** As long as a first head may take. */
const BODY_LIMIT_MS = 30_000;

/** Upgrades that are ignored: this process speaks HTTP/1.1, checks each request's host, and begins no TLS inside. */
const DECLINED = /^(h2c?|(http|tls)\/[\d.]+)$/;

/** Whether the request is handled as an ordinary one. */
export function isDeclined(request: IncomingMessage): boolean {
  return wantedOf(request).length === 0;
}

function wantedOf({ rawHeaders }: IncomingMessage): readonly string[] {
  const protocols = valuesOf(rawHeaders, "upgrade").flatMap((value) => tokens(value));
  return protocols.filter((protocol) => protocol !== "" && !DECLINED.test(protocol));
}

/** Resolves once both connections have ended. Never rejects. */
export async function upgrade(
  request: IncomingMessage,
  { socket, head }: { readonly socket: Socket; readonly head: Buffer },
  rewriting: Rewriting,
  failed: (reason: string) => void,
): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", resolve);
  });
  // The HTTP server has released the socket.
  socket.on("error", () => undefined);
  try {
    await switchOver(request, { socket, head }, rewriting);
  } catch (error) {
    const refusal = refusalOf(error);
    failed(refusal.message);
    answerRaw(socket, refusal);
  }
  await closed;
}

async function switchOver(
  request: IncomingMessage,
  { socket, head }: { readonly socket: Socket; readonly head: Buffer },
  rewriting: Rewriting,
): Promise<void> {
  const { rawHeaders } = request;
  const length = Number(valuesOf(rawHeaders, "content-length")[0] ?? 0);
  if (length > MOST_BODY_BYTES || valuesOf(rawHeaders, "transfer-encoding").length > 0)
    throw new Refusal(400, "the body of a request to switch protocols has a Content-Length, of 64 KiB at most");
  const wanted = wantedOf(request);
  const { lines, ...rest } = await prepare(request, rewriting);
  if (socket.closed) return;
  const { body, behind } = await readBody(socket, head, length);
  const call = send(
    { ...rest, lines: [...lines, "Connection", "Upgrade", "Upgrade", wanted.join(", ")] },
    rewriting.upstream,
  );
  socket.once("close", () => call.destroy());
  await new Promise<void>((resolve, reject) => {
    call.once("upgrade", (answer, peer, peerHead) => {
      const { statusCode = 101, statusMessage = "", rawHeaders } = answer;
      const chosen = valuesOf(rawHeaders, "upgrade");
      if (chosen.flatMap((value) => tokens(value)).some((protocol) => !wanted.includes(protocol))) {
        peer.destroy();
        reject(new Refusal(502, "the destination switched to a protocol that was not asked for"));
        return;
      }
      socket.write(headText(statusCode, statusMessage, switchingHeaders(rawHeaders, keepsNothing)), "latin1");
      if (peerHead.length > 0) socket.write(peerHead);
      if (behind.length > 0) peer.write(behind);
      splice(socket, peer);
      resolve();
    });
    call.once("response", (answer) => {
      answerRefused(request, socket, answer);
      resolve();
    });
    call.on("error", reject);
    relayInformation(call, request, () => socket);
    call.end(body);
  });
}

interface BodyRead {
  readonly body: Buffer;
  /** Bytes of the other protocol. */
  readonly behind: Buffer;
}

/** Reads the body of the request: what follows it is another protocol. The socket is paused before and after. */
function readBody(socket: Socket, head: Buffer, length: number): Promise<BodyRead> {
  return new Promise((resolve, reject) => {
    let bytes = head;
    const settle = () => {
      clearTimeout(timer);
      socket.pause();
      socket.off("data", take).off("end", gone).off("close", gone);
    };
    const whole = () => {
      settle();
      resolve({ body: bytes.subarray(0, length), behind: bytes.subarray(length) });
    };
    const take = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.length >= length) whole();
    };
    const gone = () => {
      settle();
      reject(new Refusal(400, "the body of the request has not come"));
    };
    const timer = setTimeout(gone, BODY_LIMIT_MS);
    if (bytes.length >= length) return whole();
    socket.on("data", take).once("end", gone).once("close", gone);
    socket.resume();
  });
}

/**
 * The destination refuses to switch: relays its answer and ends the connection, because the client may have sent more
 * already. An HTTP server reads the head again, without the upgrade, and makes the response.
 */
function answerRefused(request: IncomingMessage, socket: Socket, answer: IncomingMessage): void {
  const server = clientServer();
  server.on("request", (again, response) => {
    response.sendDate = false;
    response.on("error", () => undefined);
    socket.once("close", () => response.destroy());
    relayAnswer(again, answer, response, (error) => answerRefusal(again, response, refusalOf(error)));
  });
  socket.unshift(plainHead(request, true));
  // The connection ends with this answer.
  readRequests(server, socket, () => true);
  socket.resume();
}

function splice(a: Duplex, b: Duplex): void {
  endTogether(a, b, () => undefined);
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    // One side may have ended before the other side was there.
    if (from.readableEnded) to.end();
    else from.pipe(to);
  }
}

function keepsNothing(): boolean {
  return false;
}
