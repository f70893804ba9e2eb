/** Reads a process stream for tests, to its end or in the background. */

import type { ProcessEvent, ProcessEvent_EndEvent } from "../../../../shared/envd-rpc/gen/process_pb.js";
import { gateway } from "../../../support/runner/promises.ts";

export interface Followed {
  pid: number;
  stdout: Buffer;
  stderr: Buffer;
  terminal: Buffer;
  keepalives: number;
  end: ProcessEvent_EndEvent | undefined;
}

type Stream = AsyncIterable<{ readonly event?: ProcessEvent | undefined }>;

/** Reads the stream to its end. @throws what the stream throws */
export async function toEnd(stream: Stream): Promise<Followed> {
  const seen: Followed = {
    pid: 0,
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
    terminal: Buffer.alloc(0),
    keepalives: 0,
    end: undefined,
  };
  const pieces: Record<"stdout" | "stderr" | "pty", Uint8Array[]> = { stdout: [], stderr: [], pty: [] };
  for await (const { event } of stream) {
    switch (event?.event.case) {
      case "start":
        seen.pid = event.event.value.pid;
        break;
      case "data": {
        const { output } = event.event.value;
        if (output.case !== undefined) pieces[output.case].push(output.value);
        break;
      }
      case "keepalive":
        seen.keepalives += 1;
        break;
      case "end":
        seen.end = event.event.value;
        break;
      case undefined:
        break;
    }
  }
  return {
    ...seen,
    stdout: Buffer.concat(pieces.stdout),
    stderr: Buffer.concat(pieces.stderr),
    terminal: Buffer.concat(pieces.pty),
  };
}

export interface Background {
  readonly pid: number;
  readonly done: Promise<Followed>;
  /** Returns what the process has printed so far. */
  readonly text: () => string;
}

/** Resolves when the pid is known, and reads the stream on in the background. */
export async function inBackground(stream: Stream): Promise<Background> {
  let text = "";
  const started = gateway<number>();
  async function* tap(): Stream {
    for await (const message of stream) {
      const event = message.event?.event;
      if (event?.case === "start") started.resolve(event.value.pid);
      if (event?.case === "data" && event.value.output.case !== undefined)
        text += Buffer.from(event.value.output.value).toString("latin1");
      yield message;
    }
  }
  const done = toEnd(tap());
  done.catch((error: unknown) => started.reject(error));
  return { pid: await started.promise, done, text: () => text };
}
