/** Requests that switch protocols, WebSocket above all: sends the rule's headers, then relays bytes. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { answerRaw, refusalOf } from "./answer.ts";
import { clientServer, readRequests } from "./client-server.ts";
import { headText, prepare, type Rewriting, relayAnswer, send } from "./exchange.ts";
import { Refusal, tokens, valuesOf, without } from "./request-head.ts";

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

/** The head without the upgrade; put back in front of the connection, it is read as an ordinary request. */
export function withoutUpgrade(request: IncomingMessage, added: readonly string[] = []): Buffer {
  const { method = "", url = "", httpVersion, rawHeaders } = request;
  const drops = new Set(["upgrade", "http2-settings"]);
  const options = valuesOf(rawHeaders, "connection")
    .flatMap((value) => tokens(value))
    .filter((token) => !drops.has(token))
    .concat(added);
  const kept = without(rawHeaders, new Set([...drops, "connection"]));
  if (options.length > 0) kept.push("Connection", options.join(", "));
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i + 1 < kept.length; i += 2) text += `${kept[i]}: ${kept[i + 1]}\r\n`;
  return Buffer.from(`${text}\r\n`, "latin1");
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
  const { rawHeaders, method = "" } = request;
  const lengths = valuesOf(rawHeaders, "content-length").filter((value) => value !== "0");
  if (lengths.length > 0 || valuesOf(rawHeaders, "transfer-encoding").length > 0 || method !== "GET")
    throw new Refusal(400, "a request to switch protocols must be a GET without a body");
  const wanted = wantedOf(request);
  const { lines, ...rest } = await prepare(request, rewriting);
  if (socket.closed) return;
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
      const added = `Connection: Upgrade\r\nUpgrade: ${chosen.join(", ")}\r\n`;
      socket.write(headText({ statusCode, statusMessage, rawHeaders }, added), "latin1");
      if (peerHead.length > 0) socket.write(peerHead);
      if (head.length > 0) peer.write(head);
      splice(socket, peer);
      resolve();
    });
    call.once("response", (answer) => {
      answerRefused(request, socket, answer);
      resolve();
    });
    call.on("error", reject);
    call.end();
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
    relayAnswer(again, answer, response);
  });
  socket.unshift(withoutUpgrade(request, ["close"]));
  // The connection ends with this answer.
  readRequests(server, socket, () => true);
  socket.resume();
}

/** Half-close both ways; an error on one side ends the other. */
function splice(a: Duplex, b: Duplex): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    // One side may have ended before the other side was there.
    if (from.readableEnded) to.end();
    else from.pipe(to);
  }
  const end = () => {
    a.destroy();
    b.destroy();
  };
  for (const side of [a, b]) {
    side.on("error", end);
    side.once("close", () => {
      if (!side.readableEnded || !side.writableFinished) end();
    });
  }
}
