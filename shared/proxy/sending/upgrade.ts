/** Requests that switch protocols, through `http-proxy`: it asks the server, writes the 101 and pipes the two sockets. */

import type { Agent, ClientRequest, IncomingMessage, InformationEvent } from "node:http";
import type { Socket } from "node:net";
import { createProxyServer } from "http-proxy";
import { MAX_HEAD_BYTES } from "../limits.ts";
import type { UpgradeRequest } from "../listening/client.ts";
import { switchingHeaders } from "../raw-headers.ts";
import { cut } from "./cut.ts";
import { endTogether } from "./end-together.ts";

export interface UpgradeOptions {
  readonly request: IncomingMessage;
  readonly upgrade: UpgradeRequest;
  readonly path: string;
  /** Name, value, name, value, …, `Upgrade` among them. */
  readonly headers: readonly string[];
  readonly agent: Agent;
  /** As in `OpenCallOptions`. */
  readonly lenient: boolean;
  readonly keepsBack: (name: string) => boolean;
  /** Called with the answer of a server that does not agree to switch. */
  onAnswer(call: ClientRequest, answer: IncomingMessage): void;
  onInformation(call: ClientRequest, info: InformationEvent): void;
  /** Both sockets are now one pipe; `done` comes when it has ended. */
  onSwitched(): void;
  onDone(): void;
  onError(call: ClientRequest, error: Error): void;
}

interface Upgrading {
  /** Ends the upgrade in any phase. @param reset the client has reset its connection */
  destroy(reset: boolean): void;
}

export function sendUpgrade(options: UpgradeOptions): Upgrading {
  const { upgrade, path, agent, lenient, request } = options;
  const { socket } = upgrade;
  const state: { call?: ClientRequest; peer?: Socket } = {};
  // The library takes the options of its request from here.
  const ssl = { insecureHTTPParser: lenient, maxHeaderSize: MAX_HEAD_BYTES };
  const proxy = createProxyServer({ target: "http://upgrade.invalid", agent, ssl, prependPath: false });
  // The request or one of the sockets reports every error.
  proxy.on("error", () => undefined);
  proxy.once("proxyReqWs", (call) => {
    state.call = call;
    // The library rewrites paths, and upgrades with GET alone; the server must get the client's request.
    call.path = path;
    call.method = request.method ?? "GET";
    call.on("information", (info) => options.onInformation(call, info));
    call.once("upgrade", (answer, peer) => {
      state.peer = peer;
      upgrade.takeOver();
      answer.headers = byName(switchingHeaders(answer.rawHeaders, options.keepsBack));
      options.onSwitched();
      endTogether(socket, peer, () => options.onDone());
    });
    // The library writes other answers past a slow client's back, and closes the client's connection on every error:
    // both are ours, as for any other request.
    if (upgrade.body.length > 0) call.write(upgrade.body);
    queueMicrotask(() => {
      call.removeAllListeners("response");
      call.once("response", (answer: IncomingMessage) => options.onAnswer(call, answer));
      call.removeAllListeners("error");
      call.on("error", (error: Error) => options.onError(call, error));
    });
  });
  proxy.ws(asWebSocket(options), socket, Buffer.alloc(0));
  return {
    destroy(reset) {
      if (state.peer !== undefined) {
        // Of a stream without frames an orderly end would look complete.
        cut(state.peer);
        cut(socket);
      }
      const asked = state.call?.socket;
      if (reset && asked !== undefined && asked !== null) cut(asked);
      state.call?.destroy();
    },
  };
}

/** The library switches to WebSocket only; the headers still ask the server for the client's protocol. */
function asWebSocket({ request, headers }: UpgradeOptions): IncomingMessage {
  const asked = Object.create(request) as IncomingMessage;
  const grouped = byName(headers);
  Object.defineProperty(grouped, "upgrade", { value: "websocket", enumerable: false });
  Object.defineProperty(asked, "headers", { value: grouped });
  Object.defineProperty(asked, "method", { value: "GET" });
  return asked;
}

/** Values of one name together, in any spelling of it; the first spelling stays. */
function byName(headers: readonly string[]): Record<string, string | string[]> {
  const spelling = new Map<string, string>();
  const grouped: Record<string, string | string[]> = {};
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
