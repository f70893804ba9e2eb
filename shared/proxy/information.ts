/** Informational responses (1xx) on their way from a server to a client: which are forwarded, with which headers, how many. */

import type { IncomingMessage, InformationEvent } from "node:http";
import type { Writable } from "node:stream";
import { endToEnd, headText } from "./raw-headers.ts";

/** Informational responses before the real one; a server that sends more never means to answer. */
const MOST = 16;

export interface InformationOptions {
  readonly request: Pick<IncomingMessage, "httpVersionMajor" | "httpVersionMinor">;
  /** The client's connection; undefined once its response has begun. */
  readonly connection: () => Writable | undefined;
  /** Lower-case names of headers that stop here. */
  readonly keepsBack: (name: string) => boolean;
}

type Information = Pick<InformationEvent, "statusCode" | "statusMessage" | "rawHeaders">;

/** Those of one request. */
export class InformationRelay {
  readonly #options: InformationOptions;
  /** Responses so far. */
  count = 0;

  constructor(options: InformationOptions) {
    this.#options = options;
  }

  /**
   * Forwards the response, except for 100, which answers `Expect` on one hop. A client of HTTP/1.0 knows no such responses,
   * and one for which a slow client has no room is dropped.
   * @returns false when the server has sent too many
   */
  relay(info: Information): boolean {
    if (++this.count > MOST) return false;
    const { request, connection, keepsBack } = this.#options;
    const old = request.httpVersionMajor === 1 && request.httpVersionMinor === 0;
    if (info.statusCode === 100 || old) return true;
    const to = connection();
    if (to === undefined || to.destroyed || to.writableEnded || to.writableNeedDrain) return true;
    try {
      // Node's own methods know only some of these responses, and only some of their headers.
      to.write(informationHead(info, keepsBack), "latin1");
    } catch {
      // A response that cannot be written is dropped: the real one is still to come.
    }
    return true;
  }
}

function informationHead({ statusCode, statusMessage, rawHeaders }: Information, keepsBack: (name: string) => boolean) {
  const kept = endToEnd(rawHeaders, (name) => name === "content-length" || name === "trailer" || keepsBack(name));
  return headText(statusCode, statusMessage, kept);
}
