/** The 101 head for a client's raw socket, checked as Node checks every other response. Pure. */

import { validateHeaderName, validateHeaderValue } from "node:http";
import { endToEnd, headerValue } from "./raw-headers.ts";
import { MalformedResponseError, type ResponseHead } from "./response-head.ts";

/** @throws MalformedResponseError */
export function switchingHead(head: ResponseHead, keepsBack: (name: string) => boolean): string {
  const upgrade = headerValue(head.rawHeaders, "upgrade");
  const headers = ["Connection", "Upgrade", ...(upgrade === undefined ? [] : ["Upgrade", upgrade])];
  headers.push(...endToEnd(head.rawHeaders, (name) => name === "content-length" || keepsBack(name)));
  let text = "HTTP/1.1 101 Switching Protocols\r\n";
  try {
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const name = headers[at] ?? "";
      const value = headers[at + 1] ?? "";
      validateHeaderName(name);
      validateHeaderValue(name, value);
      text += `${name}: ${value}\r\n`;
    }
  } catch (error) {
    throw new MalformedResponseError("a header cannot be passed on", { cause: error });
  }
  return `${text}\r\n`;
}
