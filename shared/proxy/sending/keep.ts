/** Decides how long the idle connection of a response is kept. Pure. */

import type { IncomingMessage } from "node:http";
import { headerValue } from "../raw-headers.ts";

/** Less than what the server says it keeps an idle connection: it may close while our request is under way. */
const IDLE_MARGIN_MS = 1_000;

/** How long the connection of this response may be idle, milliseconds: a second less than the server says it keeps it. */
export function keepFor({ rawHeaders }: IncomingMessage, idleMs: number): number {
  const seconds = /\btimeout=(\d{1,6})\b/i.exec(headerValue(rawHeaders, "keep-alive") ?? "")?.[1];
  return seconds === undefined ? idleMs : Math.min(idleMs, Number(seconds) * 1000 - IDLE_MARGIN_MS);
}
