/** Asks for a key on the terminal without showing it. */

import type { Readable, Writable } from "node:stream";
import { EXIT, Failure, usage } from "../failure.ts";
import { readValue, type Typing } from "./value.ts";

const LONGEST = 4096;

interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  readonly stderr: Writable;
}

/** From the file, from the terminal without showing it, or from standard input. */
export async function readKey(
  { streams, out }: Typing & { readonly streams: Terminal },
  file: string | undefined,
  url: string,
): Promise<string> {
  if (file !== undefined || streams.stdin.isTTY !== true) return readValue({ streams, out }, file, "API key");
  const key = await readHidden(streams, `API key for ${url} (not shown): `);
  if (key.trim() === "") throw usage("the API key is empty");
  return key;
}

/** Resolves at the end of the line. It puts the terminal back in every case. */
async function readHidden({ stdin, stderr }: Terminal, prompt: string): Promise<string> {
  stderr.write(prompt);
  stdin.setRawMode?.(true);
  let value = "";
  try {
    for await (const data of stdin as AsyncIterable<Buffer>) {
      for (const sign of data.toString()) {
        if (sign === "\r" || sign === "\n") return value;
        // Ctrl-C and Ctrl-D: in raw mode the terminal sends no signal.
        if (sign === "\u0003" || sign === "\u0004") throw new Failure("interrupted", { exitCode: EXIT.interrupted });
        if (sign === "\u007f" || sign === "\b") value = value.slice(0, -1);
        else if (sign >= " ") value += sign;
        if (value.length > LONGEST) throw new Failure("the line is too long");
      }
    }
    return value;
  } finally {
    stdin.setRawMode?.(false);
    stderr.write("\n");
  }
}
