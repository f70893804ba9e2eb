/** The event stream of a process: its pid, its output, keepalives while it is silent, its end. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessEventSchema } from "../../shared/envd-rpc/gen/process_pb.js";
import type { Ending, Follower } from "./process.ts";

type Event = MessageInitShape<typeof ProcessEventSchema>;

export interface FollowOptions {
  readonly keepaliveMs: number;
  readonly signal: AbortSignal;
}

/** Ends after the end event. @throws the signal's reason, or why the process was lost */
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
      else if ("end" in next) {
        yield { event: endEvent(next.end) };
        return;
      } else yield { event: { event: { case: "data", value: { output: { case: next.stream, value: next.bytes } } } } };
    }
  } finally {
    follower.close();
  }
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
