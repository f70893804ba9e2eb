/** A response on its way from a server to the client: headers checked and reframed, body as it comes, nothing kept. */

import type { IncomingMessage, InformationEvent, ServerResponse } from "node:http";
import { EnvelopeTracker, isConnectStream } from "../connect-envelope.ts";
import { endToEnd, forwardableTrailers, headerValue } from "../raw-headers.ts";

/** How long a client may read no byte: one that takes longer has disappeared, or only holds the connection. */
const SLOW_CLIENT_LIMIT_MS = 600_000;

/** Largest first piece of a body that is sent together with the head. */
const JOINED_BYTES = 1024;

export interface RelayOptions {
  /** Lower-case names of headers and trailers that stop here. */
  readonly keepsBack: (name: string) => boolean;
  readonly framesErrors: boolean;
}

/** Relays 102 and 103, but not to HTTP/1.0, which has no interim responses, nor to a slow client without room for one. */
export function relayInformation(request: IncomingMessage, response: ServerResponse, info: InformationEvent): void {
  if (request.httpVersionMinor === 0 || response.headersSent || response.writableNeedDrain) return;
  if (info.statusCode === 102) response.writeProcessing();
  const link = info.statusCode === 103 ? headerValue(info.rawHeaders, "link") : undefined;
  if (link === undefined) return;
  try {
    response.writeEarlyHints({ link });
  } catch {
    // A hint that cannot be relayed is dropped.
  }
}

export class ResponseRelay {
  readonly #response: ServerResponse;
  readonly #options: RelayOptions;
  #tracker: EnvelopeTracker | undefined;
  #slow: NodeJS.Timeout | undefined;
  #begun = false;

  constructor(response: ServerResponse, options: RelayOptions) {
    this.#response = response;
    this.#options = options;
  }

  /** The response so far is a Connect stream that may still be ended with an error frame. */
  get mayAppendError(): boolean {
    return this.#tracker?.mayAppend === true && !this.#response.writableEnded;
  }

  /**
   * @param closes the client's connection is to end with this response
   * @throws when a header cannot be passed on.
   */
  head(request: IncomingMessage, answer: IncomingMessage, closes: boolean): void {
    const { keepsBack, framesErrors } = this.#options;
    const { rawHeaders, statusCode: status = 502 } = answer;
    const bodiless = request.method === "HEAD" || status === 204 || status === 304;
    const length = headerValue(rawHeaders, "content-length");
    const chunks = length === undefined && !bodiless && request.httpVersionMinor > 0;
    const headers = endToEnd(
      rawHeaders,
      (name) => name === "content-length" || (name === "trailer" && !chunks) || keepsBack(name),
    );
    if (length !== undefined && status !== 204) headers.push("Content-Length", length);
    // The explicit header lets trailers follow.
    if (chunks) headers.push("Transfer-Encoding", "chunked");
    if (closes) headers.push("Connection", "close");
    this.#response.writeHead(status, answer.statusMessage ?? "", headers);
    if (framesErrors && chunks && isConnectStream(headerValue(rawHeaders, "content-type"))) {
      this.#tracker = new EnvelopeTracker();
    }
  }

  /** Hands the body on, until the response has all of it; `answer` waits while the client is slow. */
  body(answer: IncomingMessage): void {
    answer.on("data", (chunk: Buffer) => {
      this.#tracker?.push(chunk);
      if (!this.#write(chunk)) this.#wait(answer);
    });
    // Node reads the bytes that arrived with the head before this callback.
    process.nextTick(() => {
      if (!this.#begun) setImmediate(() => this.#flush());
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
    if (this.#slow !== undefined) return;
    this.#slow = setTimeout(() => response.destroy(), SLOW_CLIENT_LIMIT_MS);
    const settle = () => {
      clearTimeout(this.#slow);
      this.#slow = undefined;
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
