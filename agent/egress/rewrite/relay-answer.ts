/** A destination's answer on its way to the sandbox: unchanged, except for its framing and hop-by-hop headers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { headerText, writableText } from "../../../shared/proxy/raw-headers.ts";
import { type ResponseFraming, responseFraming } from "../../../shared/proxy/response-framing.ts";
import { breakOff } from "../../../shared/proxy/sending/cut.ts";
import { intakeOf } from "../intake.ts";
import { hopByHop, pairs, valuesOf, without } from "./request-head.ts";

/** Length from which a body bypasses Node's queues. */
const LENT_BYTES = 1024 * 1024;

interface Information {
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly rawHeaders: readonly string[];
}

/** Status line and headers of an answer without a body, without those of one hop only. */
export function headText({ statusCode, statusMessage, rawHeaders }: Information, added = ""): string {
  const kept = pairs(without(rawHeaders, hopByHop(rawHeaders)));
  const lines = kept.map(([name, value]) => `${name}: ${writableText(value)}\r\n`);
  return `HTTP/1.1 ${statusCode} ${writableText(statusMessage)}\r\n${lines.join("")}${added}\r\n`;
}

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
    const framing = responseFraming(request, answer);
    state.framed = framing.framed;
    state.length = Number(framing.length ?? 0);
    const lines = answerLines(request, answer, { ...framing, closes: !response.shouldKeepAlive });
    response.writeHead(answer.statusCode ?? 502, writableText(answer.statusMessage ?? ""), lines);
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

const UPGRADE_REQUIRED = 426;

interface AnswerFraming extends ResponseFraming {
  /** The client's connection ends with this answer. */
  readonly closes: boolean;
}

/** @throws {AnswerFault} */
function answerLines(request: IncomingMessage, answer: IncomingMessage, framing: AnswerFraming): string[] {
  const { rawHeaders, statusCode } = answer;
  const { length, codings } = framing;
  const dropped = new Set(hopByHop(rawHeaders));
  // Beside Transfer-Encoding a length does not count.
  if (length === undefined && statusCode !== NO_CONTENT) dropped.add("content-length");
  else dropped.delete("content-length");
  const lines = pairs(without(rawHeaders, dropped)).flatMap(([name, value]) => [name, headerText(name, value)]);
  const trailers = codings === undefined ? [] : valuesOf(rawHeaders, "trailer");
  if (trailers.length > 0) lines.push("Trailer", trailers.join(", "));
  if (codings !== undefined && (trailers.length > 0 || codings !== "chunked")) lines.push("Transfer-Encoding", codings);
  const upgrades = statusCode === UPGRADE_REQUIRED ? valuesOf(rawHeaders, "upgrade") : [];
  // The client waits for "100 Continue", which did not come: its next bytes may be the body or another request.
  const waits = valuesOf(request.rawHeaders, "expect").length > 0 && !request.complete;
  if (upgrades.length > 0) {
    lines.push("Upgrade", writableText(upgrades.join(", ")));
    // A header about the connection would make Node forget that the client asked for its end.
    lines.push("Connection", waits || framing.closes ? "close, Upgrade" : "Upgrade");
  } else if (waits) lines.push("Connection", "close");
  return lines;
}

const NO_CONTENT = 204;
