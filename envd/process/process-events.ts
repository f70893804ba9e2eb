/** The event stream of a process: its pid, its output, keepalives while it is silent, its end. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessEventSchema } from "../../shared/envd-rpc/gen/process_pb.js";
import type { Ending, Follower } from "./process.ts";
import { STALLED_MS } from "./subscription.ts";

type Event = MessageInitShape<typeof ProcessEventSchema>;

export interface FollowOptions {
  readonly keepaliveMs: number;
  readonly signal: AbortSignal;
}

/** Ends after the end event. @throws the signal's reason, why the process was lost, or that the reader was dropped */
export async function* processEvents(
  pid: number,
  follower: Follower,
  options: FollowOptions,
): AsyncGenerator<{ event: Event }> {
  try {
    yield { event: startEvent(pid) };
    for (;;) {
      const next = await follower.next(options.keepaliveMs, options.signal);
      if (next === undefined) yield { event: { event: { case: "keepalive", value: {} } } };
      else if (next === "dropped") throw droppedReader();
      else if ("end" in next) {
        yield { event: endEvent(next.end) };
        return;
      } else yield { event: { event: { case: "data", value: { output: { case: next.stream, value: next.bytes } } } } };
    }
  } finally {
    follower.close();
  }
}

/** Reaches a reader that reads again, behind what was sent to it before. */
function droppedReader(): ConnectError {
  return new ConnectError(
    `this reader took no output for ${STALLED_MS / 1_000} s, and the process waited for it: it was dropped, and loses the ` +
      "output after this; the process runs on, connect to it again",
    Code.Aborted,
  );
}

export function startEvent(pid: number): Event {
  return { event: { case: "start", value: { pid } } };
}

/** A process that was killed by its deadline, or lost, has no result: its stream fails instead. */
export function endEvent(ending: Ending): Event {
  switch (ending.is) {
    case "exit":
      return { event: { case: "end", value: ending.report } };
    case "deadline":
      throw new ConnectError("the process was killed: its deadline passed", Code.DeadlineExceeded);
    case "lost":
      throw new ConnectError("the process was lost: its helper ended unexpectedly", Code.Internal);
  }
}
