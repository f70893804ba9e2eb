/** A response on its way from a server to the client: headers checked and reframed, body as it comes, nothing kept. */

import type { ClientRequest, ClientResponse } from "./client.ts";
import { EnvelopeTracker, isConnectStream } from "./connect-envelope.ts";
import { endToEnd, forwardableTrailers, headerValue } from "./raw-headers.ts";
import { MalformedResponseError, type ResponseHead } from "./response-head.ts";

export interface RelayOptions {
  readonly keepsBack: (name: string) => boolean;
  readonly framesErrors: boolean;
}

export class ResponseRelay {
  readonly #request: ClientRequest;
  readonly #response: ClientResponse;
  readonly #options: RelayOptions;
  #tracker: EnvelopeTracker | undefined;
  #unflushed = false;
  #final: Buffer | undefined;

  constructor(request: ClientRequest, response: ClientResponse, options: RelayOptions) {
    this.#request = request;
    this.#response = response;
    this.#options = options;
  }

  /** The response so far is a Connect stream that may still be ended with an error frame. */
  get mayAppendError(): boolean {
    return this.#tracker?.mayAppend === true && !this.#response.writableEnded;
  }

  /** 102 and 103; HTTP/1.0 knows no interim responses. */
  informational(head: ResponseHead): void {
    if (this.#request.httpVersionMinor === 0) return;
    if (head.status === 102) this.#response.writeProcessing();
    const link = head.status === 103 ? headerValue(head.rawHeaders, "link") : undefined;
    if (link === undefined) return;
    try {
      this.#response.writeEarlyHints({ link });
    } catch {
      // A hint that cannot be sent on is only a hint.
    }
  }

  /** @throws MalformedResponseError */
  head(head: ResponseHead): void {
    const { keepsBack, framesErrors } = this.#options;
    const sized = head.contentLength !== undefined;
    const bodiless = this.#request.method === "HEAD" || head.status === 204 || head.status === 304;
    const chunks = !sized && !bodiless && this.#request.httpVersionMinor > 0;
    const headers = endToEnd(
      head.rawHeaders,
      (name) => name === "content-length" || (name === "trailer" && !chunks) || keepsBack(name),
    );
    if (sized && head.status !== 204) headers.push("Content-Length", String(head.contentLength));
    try {
      this.#response.writeHead(head.status, head.reason, headers);
    } catch (error) {
      throw new MalformedResponseError("a header cannot be passed on", { cause: error });
    }
    if (framesErrors && chunks && isConnectStream(head.contentType)) this.#tracker = new EnvelopeTracker();
    this.#unflushed = true;
  }

  /** Returns false when the client is slow: wait for `drain`. */
  data(chunk: Buffer, last: boolean): boolean {
    this.#unflushed = false;
    this.#tracker?.push(chunk);
    if (!last) return this.#response.write(chunk);
    // Leaves together with the end, in one system call.
    this.#final = chunk;
    return true;
  }

  /** A head whose body is not there yet must not wait for it. */
  flush(): void {
    if (!this.#unflushed) return;
    this.#unflushed = false;
    this.#response.flushHeaders();
  }

  end(rawTrailers: readonly string[]): void {
    this.#unflushed = false;
    if (rawTrailers.length > 0) this.#addTrailers(rawTrailers);
    if (this.#final === undefined) this.#response.end();
    else this.#response.end(this.#final);
  }

  #addTrailers(rawTrailers: readonly string[]): void {
    const kept = forwardableTrailers(rawTrailers);
    const pairs: [string, string][] = [];
    for (let at = 0; at + 1 < kept.length; at += 2) pairs.push([kept[at] ?? "", kept[at + 1] ?? ""]);
    try {
      this.#response.addTrailers(pairs);
    } catch {
      // The body was whole; a trailer that cannot be written is left out.
    }
  }
}
