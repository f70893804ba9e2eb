/** Reads messages of JSON, one a line, from a stream of bytes. */

import { StringDecoder } from "node:string_decoder";
import { Compile } from "typebox/compile";
import { Line } from "./messages.ts";

/** A list of many paused sandboxes is the longest line. */
const LONGEST_LINE = 64 * 1024 * 1024;

const known = Compile(Line);

export interface LineReader {
  /** @throws Error for what is no message, or has no end */
  read(bytes: Buffer, onLine: (line: Line) => void): void;
}

/** Messages of a kind that this version does not know are passed over: a newer orchestrator may send them. */
export function lineReader(longest = LONGEST_LINE): LineReader {
  const decoder = new StringDecoder("utf8");
  let parts: string[] = [];
  let length = 0;
  return {
    read(bytes, onLine) {
      const lines = decoder.write(bytes).split("\n");
      const rest = lines.pop() ?? "";
      for (const line of lines) {
        const text = parts.join("") + line;
        parts = [];
        length = 0;
        const message = parse(text);
        if (message !== undefined) onLine(message);
      }
      parts.push(rest);
      length += rest.length;
      if (length > longest) throw new Error(`a line has more than ${longest} characters`);
    },
  };
}

const KINDS: ReadonlySet<unknown> = new Set<Line["is"]>([
  "hello",
  "node",
  "route",
  "whole",
  "removed",
  "answer",
  "pong",
]);

function parse(text: string): Line | undefined {
  const message: unknown = JSON.parse(text);
  if (known.Check(message)) return message;
  const kind = typeof message === "object" && message !== null && "is" in message ? message.is : undefined;
  if (KINDS.has(kind))
    throw new Error(`a message '${String(kind)}' of the orchestrator has another form than expected`);
  return undefined;
}
