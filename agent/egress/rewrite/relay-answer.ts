/** A destination's answer on its way to the sandbox: unchanged, except for its framing and hop-by-hop headers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { answerHead } from "../../../shared/proxy/answer-head.ts";
import { writableText } from "../../../shared/proxy/raw-headers.ts";
import { breakOff } from "../../../shared/proxy/sending/cut.ts";
import { intakeOf } from "../carry/intake.ts";
import { hopByHop, pairs, valuesOf, without } from "./request-head.ts";

/** Length from which a body bypasses Node's queues. */
const LENT_BYTES = 1024 * 1024;

/** The destination's answer unchanged, except for hop-by-hop headers. */
export function relayAnswer(
  request: IncomingMessage,
  answer: IncomingMessage,
  response: ServerResponse,
  refuse: (error: unknown) => void,
): void {
  let whole = false;
  const state = { framed: true, length: 0 };
  const cut = () => {
    if (!whole) breakOff(request, response, state.framed);
    whole = true;
  };
  answer.on("error", cut);
  answer.once("close", () => {
    if (!answer.complete) cut();
  });
  try {
    // A client that waits for "100 Continue", which did not come, may send the body or another request next.
    const waits = valuesOf(request.rawHeaders, "expect").length > 0 && !request.complete;
    const closes = waits || !response.shouldKeepAlive;
    const head = answerHead(request, answer, { keepsBack: () => false, closes });
    state.framed = head.framed;
    state.length = Number(head.length ?? 0);
    response.writeHead(answer.statusCode ?? 502, writableText(answer.statusMessage ?? ""), head.headers);
    response.flushHeaders();
  } catch (error) {
    // The answer cannot be sent as it is.
    whole = true;
    answer.destroy();
    refuse(error);
    return;
  }
  answer.once("end", () => {
    const trailers = pairs(without(answer.rawTrailers, hopByHop(answer.rawHeaders)));
    // Node drops them where the answer is not sent in chunks.
    if (trailers.length > 0) response.addTrailers(trailers);
    response.end();
  });
  void pour(request, answer, response, {
    length: state.length,
    over: () => {
      whole = true;
    },
  });
}

interface Pouring {
  /** 0: not known. */
  readonly length: number;
  /** Called when everything has been passed on, and further events of `answer` do not matter. */
  readonly over: () => void;
}

/**
 * Passes a long body of known length around Node's parser, which would copy it twice: more work than all the rest. The
 * parser then waits for the end of a body that it does not see, so the connection is not used for another request.
 */
async function pour(
  request: IncomingMessage,
  answer: IncomingMessage,
  response: ServerResponse,
  { length, over }: Pouring,
): Promise<void> {
  const intake = intakeOf(answer.socket);
  // The end of a request that is still being sent would be lost with the connection.
  if (intake === undefined || length < LENT_BYTES || !request.complete || !hasBody(request, answer)) {
    answer.pipe(response, { end: false });
    return;
  }
  // At the next tick the bytes that came with the head are parsed, and no more are read.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  if (answer.destroyed || response.destroyed) return;
  if (answer.complete || answer.socket.readableLength > 0) return void answer.pipe(response, { end: false });
  let left = length;
  for (let early = answer.read(); early !== null; early = answer.read()) {
    left -= (early as Buffer).length;
    response.write(early);
  }
  const finish = () => {
    over();
    response.end();
  };
  intake.lend(response, { bytes: left, over: finish });
}

function hasBody({ method }: IncomingMessage, { statusCode }: IncomingMessage): boolean {
  return method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
}
