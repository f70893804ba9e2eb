/** What a program of a sandbox printed and how it ended, from the messages of envd. */

import { joined } from "../../base/joined.ts";
import { fromBase64 } from "../envd.ts";

export interface Message {
  readonly event?: {
    readonly start?: { readonly pid: number };
    readonly data?: { readonly stdout?: string; readonly stderr?: string };
    /** A field that is zero is left out. */
    readonly end?: { readonly exitCode?: number; readonly status?: string };
  };
}

export interface Outcome {
  readonly exitCode: number;
  readonly output: Uint8Array<ArrayBuffer>;
  /** The end of what it said of errors. */
  readonly errors: string;
}

const MOST_ERROR_BYTES = 4_096;

/**
 * Reads the messages to the end of the program.
 * @param mostBytes of output; a program that prints more is not read on
 * @throws {Error}
 */
export async function outcomeOf(messages: AsyncIterable<Message>, mostBytes: number): Promise<Outcome> {
  const parts: Uint8Array[] = [];
  let length = 0;
  let errors = "";
  for await (const { event } of messages) {
    const { stdout, stderr } = event?.data ?? {};
    if (stdout !== undefined) {
      const part = fromBase64(stdout);
      length += part.length;
      if (length > mostBytes) throw new Error(`a program of the sandbox printed more than ${mostBytes} bytes`);
      parts.push(part);
    }
    if (stderr !== undefined) errors = (errors + new TextDecoder().decode(fromBase64(stderr))).slice(-MOST_ERROR_BYTES);
    if (event?.end !== undefined) return { exitCode: event.end.exitCode ?? 0, output: joined(parts), errors };
  }
  throw new Error("the connection to the sandbox was lost");
}
