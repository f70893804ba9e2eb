/** One event as one line of the answer: JSON in ASCII, numbers of kernels as they were written. Pure. */

import { asciiJson, asciiText } from "../json/ascii.ts";
import type { Bundle, KernelEvent } from "../kernels/kernel.ts";

export const END = `${asciiJson({ type: "end_of_execution" })}\n`;
export const KEEPALIVE = `${asciiJson({ type: "keepalive" })}\n`;

/** Mime type → the field of a result; all other types are in `extra`. */
const FIELDS = new Map([
  ["text/plain", "text"],
  ["text/html", "html"],
  ["text/markdown", "markdown"],
  ["image/svg+xml", "svg"],
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["application/pdf", "pdf"],
  ["text/latex", "latex"],
  ["application/json", "json"],
  ["application/javascript", "javascript"],
  ["e2b/data", "data"],
  ["e2b/chart", "chart"],
]);
/** Fields whose value is an object (or list), which kernels may send as a string of JSON. */
const STRUCTURED = new Set(["json", "data", "chart"]);

/** @param now for output without a time of its own */
export function lineOf(event: KernelEvent, now: () => Date): string {
  switch (event.type) {
    case "count":
      return `${asciiJson({ type: "number_of_executions", execution_count: event.count })}\n`;
    case "output": {
      const timestamp = event.timestamp ?? now().toISOString();
      return `${asciiJson({ type: event.stream, text: event.text, timestamp })}\n`;
    }
    case "error": {
      const { type, name, value, traceback } = event;
      return `${asciiJson({ type, name, value, traceback })}\n`;
    }
    case "result":
      return resultLine(event.bundle, event.main);
  }
}

function resultLine(bundle: Bundle, main: boolean): string {
  const parts = ['{"type":"result"'];
  const extra: string[] = [];
  for (const [mime, json] of bundle) {
    const field = FIELDS.get(mime);
    if (field === undefined) {
      extra.push(`${asciiJson(mime)}:${asciiText(json)}`);
      continue;
    }
    const value = valueOf(field, json);
    if (value !== undefined) parts.push(`${asciiJson(field)}:${value}`);
  }
  parts.push(`"extra":{${extra.join(",")}}`, `"is_main_result":${main}}\n`);
  return parts.join(",");
}

/** Undefined for a value that the clients would not understand in this field. */
function valueOf(field: string, json: string): string | undefined {
  if (STRUCTURED.has(field)) return structured(json);
  if (field !== "text") return asciiText(json);
  const text: unknown = JSON.parse(json);
  return asciiJson(typeof text === "string" ? withoutQuotes(text) : json);
}

function structured(json: string): string | undefined {
  const value: unknown = JSON.parse(json);
  if (typeof value !== "string") return isStructure(value) ? asciiText(json) : undefined;
  try {
    return isStructure(JSON.parse(value)) ? asciiText(value) : undefined;
  } catch {
    return undefined;
  }
}

function isStructure(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** A pair of the same quotes around the whole text is cut off, as clients are used to. */
function withoutQuotes(text: string): string {
  const first = text[0];
  const quoted = text.length >= 2 && (first === "'" || first === '"') && text.endsWith(first);
  return quoted ? text.slice(1, -1) : text;
}
