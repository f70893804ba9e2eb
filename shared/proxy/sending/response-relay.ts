/** A response on its way from a server to the client: headers checked and reframed, body as it comes, nothing kept. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { answerHead } from "../answer-head.ts";
import { EnvelopeTracker, type StreamForm, streamFormOf } from "../connect-envelope.ts";
import { forwardableTrailers, headerValue, writableText } from "../raw-headers.ts";
import { breakOff } from "../sockets/cut.ts";
import type { ForwardPlan } from "./forward-plan.ts";

/** Largest first piece of a body that is sent together with the head. */
const JOINED_BYTES = 1024;

type RelayOptions = Pick<ForwardPlan, "keepsBack" | "framesErrors" | "patience" | "carryBody">;

export class ResponseRelay {
  readonly #response: ServerResponse;
  readonly #options: RelayOptions;
  #tracker: EnvelopeTracker | undefined;
  #waits = false;
  #begun = false;
  /** The client knows where the body ends without the end of the connection. */
  #framed = true;
  #length = 0;

  constructor(response: ServerResponse, options: RelayOptions) {
    this.#response = response;
    this.#options = options;
  }

  /** The framing of the response, where it has one. */
  get form(): StreamForm | undefined {
    return this.#tracker?.form;
  }

  /** The response so far is a framed stream that may still be ended with an error frame. */
  get mayAppendError(): boolean {
    return this.#tracker?.mayAppend === true && !this.#response.writableEnded;
  }

  /**
   * @param closes the client's connection is to end with this response
   * @throws {AnswerFault} when the answer cannot be forwarded with its meaning intact
   */
  head(request: IncomingMessage, answer: IncomingMessage, closes: boolean): void {
    const { keepsBack, framesErrors } = this.#options;
    const { statusCode = 502, statusMessage = "", rawHeaders } = answer;
    const { headers, codings, framed, length } = answerHead(request, answer, {
      keepsBack,
      closes: closes || !this.#response.shouldKeepAlive,
    });
    this.#framed = framed;
    this.#length = Number(length ?? 0);
    this.#response.writeHead(statusCode, writableText(statusMessage), headers);
    const form = streamFormOf(headerValue(rawHeaders, "content-type"));
    if (framesErrors && codings !== undefined && form !== undefined) {
      this.#tracker = new EnvelopeTracker(form);
    }
  }

  /** The answer has lost its rest: ends the client's connection after what there is of it. */
  breakOff(request: IncomingMessage): void {
    breakOff(request, this.#response, this.#framed);
  }

  /** Hands the body on, until the response has all of it. @param over called when it has, past the parser */
  body(request: IncomingMessage, answer: IncomingMessage, over: () => void): void {
    const { carryBody } = this.#options;
    if (carryBody === undefined) this.#carry(answer);
    else {
      const carry = () => this.#carry(answer);
      carryBody({ request, answer, response: this.#response, length: this.#length, carry, over });
    }
    // Node reads the bytes that arrived with the head before this callback.
    process.nextTick(() => {
      if (!this.#begun) setImmediate(() => this.#flush());
    });
  }

  /** `answer` waits while the client is slow. */
  #carry(answer: IncomingMessage): void {
    answer.on("data", (chunk: Buffer) => {
      this.#tracker?.push(chunk);
      if (!this.#write(chunk)) this.#wait(answer);
    });
  }

  /** Sends the head alone if no body has arrived yet. */
  #flush(): void {
    if (!this.#begun && !this.#response.destroyed) this.#response.flushHeaders();
  }

  #write(chunk: Buffer): boolean {
    const first = !this.#begun;
    this.#begun = true;
    // Node appends text to the text of the head; bytes stay a second buffer, and a write of two costs more.
    if (first && chunk.length <= JOINED_BYTES) return this.#response.write(chunk.toString("latin1"), "latin1");
    return this.#response.write(chunk);
  }

  /** Waits until the client has read the bytes that it was sent. */
  #wait(answer: IncomingMessage): void {
    const response = this.#response;
    answer.pause();
    if (this.#waits) return;
    this.#waits = true;
    const { stallMs } = this.#options.patience;
    const slow = stallMs > 0 ? setTimeout(() => response.destroy(), stallMs) : undefined;
    const settle = () => {
      clearTimeout(slow);
      this.#waits = false;
      response.removeListener("drain", settle);
      response.removeListener("close", settle);
      if (!response.closed) answer.resume();
    };
    response.on("drain", settle);
    response.on("close", settle);
  }

  end(rawTrailers: readonly string[]): void {
    this.#begun = true;
    if (rawTrailers.length > 0) {
      const { keepsBack } = this.#options;
      try {
        this.#response.addTrailers(forwardableTrailers(rawTrailers, keepsBack));
      } catch {
        // The body is complete; a trailer that cannot be written is left out.
      }
    }
    this.#response.end();
  }
}
