/** A value that must not be in a command line, which every user of the machine can read: from a file or standard input. */

import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { Failure, usage } from "../failure.ts";

export interface Typing {
  readonly streams: { readonly stdin: Readable & { readonly isTTY?: boolean } };
  readonly out: { note(text: string): void };
}

/** A line break at the end, which editors and `echo` leave, is not part of the value. */
export async function readValue({ streams, out }: Typing, file: string | undefined, what: string): Promise<string> {
  const data = file === undefined ? await typed({ streams, out }, what) : await read(file);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(data).replace(/\r?\n$/, "");
  } catch (cause) {
    throw new Failure(`the ${what} is not text in UTF-8`, { cause });
  }
  if (text === "") throw usage(`the ${what} is empty`);
  return text;
}

function typed({ streams: { stdin }, out }: Typing, what: string): Promise<Buffer> {
  if (stdin.isTTY === true)
    out.note(`Enter the ${what}, then Ctrl-D at the beginning of a line. It is shown as you type.`);
  return buffer(stdin);
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new Failure(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
}
