/** Sends standard input to a process in a sandbox, in order and one piece at a time, so that it waits where the process does not read. */

import type { Readable } from "node:stream";
import type { CallOptions } from "@connectrpc/connect";
import type { Inside } from "./sandbox.ts";

const LARGEST_PIECE = 64 * 1024;

/** Resolves when the input has ended and the process knows it. */
export async function pipeInput(inside: Inside, pid: number, input: Readable, options: CallOptions): Promise<void> {
  const process = { selector: { case: "pid" as const, value: pid } };
  for await (const data of input as AsyncIterable<Buffer>) {
    for (let from = 0; from < data.length; from += LARGEST_PIECE) {
      const value = data.subarray(from, from + LARGEST_PIECE);
      await inside.process.sendInput({ process, input: { input: { case: "stdin", value } } }, options);
    }
  }
  await inside.process.closeStdin({ process }, options);
}
