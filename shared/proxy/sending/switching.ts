/** Requests that switch protocols, by `node:http`: asks the server, and makes the two sockets one pipe when it agrees. */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { AnswerFault } from "../answer-fault.ts";
import { headerValue, headText, switchingHeaders } from "../raw-headers.ts";
import { cut } from "../sockets/cut.ts";
import { endTogether } from "../sockets/end-together.ts";
import { openCall } from "./call.ts";
import type { ForwardPlan } from "./forward-plan.ts";
import type { Switching, SwitchOptions } from "./switch-options.ts";

/**
 * Whether `http-proxy` can carry the request. It reads several `Upgrade` headers as one value and refuses that; and Node has written
 * the head of a request with `Expect` before its headers can be set.
 */
export function isWebSocket({ method, headers }: IncomingMessage, protocol: string): boolean {
  const asked = [protocol, headers.upgrade ?? ""].map((each) => each.toLowerCase());
  return method === "GET" && headers.expect === undefined && asked.every((each) => each === "websocket");
}

/** @param maySwitch as in `ForwardPlan` */
export function sendUpgrade(options: SwitchOptions, maySwitch: ForwardPlan["maySwitch"]): Switching {
  const { request, upgrade, keepsBack, onError } = options;
  const { method } = request;
  const { socket } = upgrade;
  let peer: Duplex | undefined;
  const call = openCall({ ...options, method });
  call.on("information", (info) => options.onInformation(info, (error) => call.destroy(error)));
  call.on("error", onError);
  call.once("response", (answer) => options.onAnswer(answer));
  call.once("upgrade", ({ rawHeaders }, server, behind) => {
    if (maySwitch?.(upgrade.protocol, headerValue(rawHeaders, "upgrade") ?? upgrade.protocol) === false) {
      server.destroy();
      onError(new AnswerFault("it switched to a protocol that was not asked for"));
      return;
    }
    peer = server;
    const early = upgrade.takeOver();
    options.onSwitched();
    socket.write(headText(101, "Switching Protocols", switchingHeaders(rawHeaders, keepsBack)), "latin1");
    if (behind.length > 0) server.unshift(behind);
    if (early.length > 0) server.write(early);
    endTogether(socket, server, () => options.onDone());
    socket.pipe(server).pipe(socket);
  });
  call.end(upgrade.body);
  return {
    get reached() {
      return call.socket !== null;
    },
    destroy(reset) {
      if (peer === undefined) {
        if (reset && call.socket !== null) cut(call.socket);
        call.destroy();
      } else cutBoth(socket, peer);
    },
  };
}

/** Of a stream without frames an orderly end would look complete. */
export function cutBoth(a: Duplex, b: Duplex): void {
  cut(a);
  cut(b);
}
