/** Puts a request to upgrade back in front of its connection, to be read as the plain request that it also is. */

import type { IncomingMessage } from "node:http";

const DROPPED: ReadonlySet<string> = new Set(["connection", "http2-settings", "upgrade"]);

/**
 * The head again, without the upgrade.
 * @param answered the request has been forwarded: its answer comes, and the connection ends with that. Its body has been
 * read, so the head announces none
 */
export function plainHead({ method, url, httpVersion, rawHeaders }: IncomingMessage, answered: boolean): Buffer {
  let text = `${method ?? "GET"} ${url ?? "/"} HTTP/${httpVersion}\r\n`;
  const options: string[] = answered ? ["close"] : [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const value = rawHeaders[at + 1] ?? "";
    const lower = name.toLowerCase();
    if (lower === "connection") options.push(...optionsOf(value));
    else if (!DROPPED.has(lower) && !(answered && lower === "content-length")) text += `${name}: ${value}\r\n`;
  }
  if (options.length > 0) text += `Connection: ${options.join(", ")}\r\n`;
  return Buffer.from(`${text}\r\n`, "latin1");
}

function optionsOf(value: string): string[] {
  return value
    .split(",")
    .map((option) => option.trim())
    .filter((option) => option !== "" && !DROPPED.has(option.toLowerCase()));
}
