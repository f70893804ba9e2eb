/** The worker's side of its two pipes: commands come in on one, events go out on the other, each a line of JSON. */

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";

export class Channel {
  readonly #output: number;

  /** @param output descriptor of the pipe for events */
  constructor(output: number) {
    this.#output = output;
  }

  /** Blocks while the server does not read: output of a loop that never waits arrives at once, and fills no memory. */
  send(event: readonly unknown[]): void {
    const bytes = Buffer.from(`${JSON.stringify(event)}\n`);
    for (let written = 0; written < bytes.length; ) written += writeSync(this.#output, bytes, written);
  }

  /** What is printed becomes an event, in its order among the others. */
  takeOver(stream: NodeJS.WriteStream, name: "stdout" | "stderr"): void {
    // The pieces of another program's output end inside of characters.
    const decoder = new StringDecoder("utf8");
    stream.write = (
      piece: string | Uint8Array,
      encoding?: BufferEncoding | ((error?: Error | null) => void),
      done?: (error?: Error | null) => void,
    ): boolean => {
      const text = typeof piece === "string" ? decoder.end() + piece : decoder.write(Buffer.from(piece));
      if (text !== "") this.send(["output", name, text]);
      const called = typeof encoding === "function" ? encoding : done;
      if (called !== undefined) process.nextTick(called);
      return true;
    };
  }
}

/** Each line of the pipe for commands; `gone` when the server closed it. */
export function readLines(descriptor: number, take: (line: string) => void, gone: () => void): void {
  let rest = "";
  new Socket({ fd: descriptor, readable: true, writable: false })
    .setEncoding("utf8")
    .on("data", (text: unknown) => {
      const lines = (rest + String(text)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) take(line);
    })
    .on("close", gone)
    .on("error", gone);
}
