/** Tells a browser that opens a page from a program and from a preflight. Pure. */

import { headerValue } from "../../../shared/proxy/raw-headers.ts";

const SCRIPT_MODES: ReadonlySet<string> = new Set(["cors", "no-cors", "same-origin", "websocket"]);
const BROWSER = /mozilla|chrome|safari|firefox|edge|opera|msie/i;

/**
 * The kind of client that reads the answer. The public SDKs, the CLI and `fetch` are scripts: they read the status and
 * JSON. A browser always sends Accept. A program that names itself a browser and sends no Accept is a `probe`: the public
 * tests of the wire protocol do so and expect a page that begins with `<html`, so a probe gets the page without a doctype.
 */
export type Reader = "script" | "browser" | "probe";

export function readerOf(rawHeaders: readonly string[]): Reader {
  if (!isNavigation(rawHeaders)) return "script";
  return headerValue(rawHeaders, "accept") === undefined ? "probe" : "browser";
}

/** True when the answer may be an HTML page. Accept, Sec-Fetch-Mode and X-Requested-With decide before User-Agent. */
export function isNavigation(rawHeaders: readonly string[]): boolean {
  const accept = (headerValue(rawHeaders, "accept") ?? "").toLowerCase();
  if (accept.includes("application/json") && !accept.includes("text/html")) return false;
  const mode = (headerValue(rawHeaders, "sec-fetch-mode") ?? "").toLowerCase();
  if (SCRIPT_MODES.has(mode)) return false;
  if (mode !== "navigate" && headerValue(rawHeaders, "x-requested-with") !== undefined) return false;
  return BROWSER.test(headerValue(rawHeaders, "user-agent") ?? "");
}

export function isPreflight(method: string | undefined, rawHeaders: readonly string[]): boolean {
  return method === "OPTIONS" && headerValue(rawHeaders, "access-control-request-method") !== undefined;
}
