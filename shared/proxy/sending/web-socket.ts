/**
 * WebSockets through `http-proxy`: it asks the server, writes the 101 or the server's other answer, and pipes the sockets.
 * It carries GET alone, over a connection that is open already: it ends the client's connection after every error.
 */

import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { createProxyServer } from "http-proxy";
import { answerHead } from "../answer-head.ts";
import { MAX_HEAD_BYTES } from "../limits.ts";
import { switchingHeaders, writableText } from "../raw-headers.ts";
import { DialledAgent } from "../sockets/agents.ts";
import { cut } from "../sockets/cut.ts";
import { endTogether } from "../sockets/end-together.ts";
import type { Switching, SwitchOptions } from "./switch-options.ts";
import { cutBoth } from "./switching.ts";

/** The agent has the connection; the library needs an address all the same. */
const TARGET = "http://upgrade.invalid";

export function sendWebSocket(options: SwitchOptions): Switching {
  const { request, upgrade, path, agent, lenient, keepsBack } = options;
  const { socket } = upgrade;
  const state: { call?: ClientRequest; peer?: Socket; over?: true } = {};
  const proxy = createProxyServer({
    target: TARGET,
    prependPath: false,
    // The library takes the options of its request's parser from here.
    ssl: { insecureHTTPParser: lenient, maxHeaderSize: MAX_HEAD_BYTES },
  });
  // The answer that this leads to is written within the call: then the library ends the client's connection.
  proxy.on("error", (error) => options.onError(error));
  proxy.once("proxyReqWs", (call) => {
    state.call = call;
    // The library listens only behind this call.
    call.on("error", ignore);
    call.path = path;
    setHeaders(call, byName(options.headers));
    call.on("information", (info) => options.onInformation(info, (error) => call.destroy(error)));
    call.once("upgrade", (answer, peer) => {
      state.peer = peer;
      answer.headers = byName(switchingHeaders(answer.rawHeaders, keepsBack));
      socket.unshift(upgrade.takeOver());
      options.onSwitched();
      endTogether(socket, peer, () => options.onDone());
    });
    call.once("response", (answer) => {
      options.onSwitched();
      socket.once("close", () => options.onDone());
      guardAnswer(answer, options);
    });
  });
  agent
    .open(options.dialSignal())
    .then((connection) => {
      // The exchange may have ended in the moment in which the connection was opened.
      const isWanted = !state.over && !socket.destroyed;
      try {
        if (isWanted) proxy.ws(request, socket, Buffer.alloc(0), { agent: agentOf(connection) });
      } finally {
        // Without a request nothing listens to the connection: a reset would end the program, and nothing would close the connection.
        if (state.call === undefined) connection.destroy();
      }
    })
    .catch((error: Error) => options.onError(error));
  return {
    get reached() {
      return (state.call?.socket ?? null) !== null;
    },
    destroy(reset) {
      state.over = true;
      if (state.peer !== undefined) cutBoth(state.peer, socket);
      const asked = state.call?.socket;
      if (reset && asked !== undefined && asked !== null) cut(asked);
      state.call?.destroy();
    },
  };
}

/** Gives out the one connection, to one request. */
function agentOf(connection: Socket): DialledAgent {
  return new DialledAgent({ dial: () => Promise.resolve(connection), keeps: false, onOpen: () => undefined });
}

function setHeaders(call: ClientRequest, headers: Readonly<Record<string, string | string[]>>): void {
  for (const name of call.getHeaderNames()) call.removeHeader(name);
  for (const [name, value] of Object.entries(headers)) call.setHeader(name, value);
}

/**
 * The library relays the answer of a server that does not agree, whole and cut ones alike, as fast as it comes: this
 * changes its head as that of any answer, stops it while the client is slow, and ends what breaks off.
 */
function guardAnswer(answer: IncomingMessage, { request, upgrade, keepsBack, stallMs }: SwitchOptions): void {
  const { socket } = upgrade;
  answer.on("error", () => undefined);
  answer.once("close", () => {
    if (!answer.complete) cut(socket);
  });
  socket.setTimeout(stallMs, () => socket.destroy());
  answer.on("data", () => {
    if (!socket.writableNeedDrain) return;
    answer.pause();
    socket.once("drain", () => answer.resume());
  });
  try {
    const { headers, codings, framed } = answerHead(request, answer, { keepsBack, closes: true });
    const named = Object.fromEntries(
      Object.entries(byName(headers)).map(([name, value]) => [name.toLowerCase(), value] as const),
    );
    // The library sends everything else in chunks, also where there is no body.
    if (framed && codings === undefined) named["content-length"] ??= "0";
    if (codings !== undefined && codings !== "chunked") throw new Error("the library writes no other coding");
    answer.headers = named;
    answer.statusMessage = writableText(answer.statusMessage ?? "");
  } catch {
    answer.destroy();
    socket.destroy();
  }
}

/** The listener of the library reports it. */
function ignore(): void {}

/** Values of one name together, in any spelling of it; the first spelling stays. */
function byName(headers: readonly string[]): Record<string, string | string[]> {
  const spelling = new Map<string, string>();
  // A header may have the name of a property that every other object has.
  const grouped = Object.create(null) as Record<string, string | string[]>;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? "";
    const spelt = spelling.get(name.toLowerCase()) ?? name;
    spelling.set(name.toLowerCase(), spelt);
    const value = headers[at + 1] ?? "";
    const before = grouped[spelt];
    grouped[spelt] = before === undefined ? value : [before, value].flat();
  }
  return grouped;
}
