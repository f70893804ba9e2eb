/** Runs a program in a sandbox as if it ran here: input, output, exit code, and the signals that end it. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ProcessEvent } from "../../../shared/envd-rpc/gen/process_pb.js";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure } from "../../failure.ts";
import { pipeInput } from "../../inside/input.ts";
import { enter, type Inside, insideFailure } from "../../inside/sandbox.ts";
import type { Options } from "../../options.ts";

type Event = ProcessEvent["event"];

/** How long a program may take to end by itself once it is asked to. */
const GRACE_MS = 5_000;
const SIGTERM = 15;
const SIGKILL = 9;

/** Numbers of the signals that envd names where one ended the program. */
const SIGNALS: Readonly<Record<string, number>> = {
  "signal: hangup": 1,
  "signal: interrupt": 2,
  "signal: quit": 3,
  "signal: aborted": 6,
  "signal: killed": SIGKILL,
  "signal: segmentation fault": 11,
  "signal: broken pipe": 13,
  "signal: terminated": SIGTERM,
};

export const exec: Action = async (context, { first: sandboxID, rest }, options) => {
  const inside = await enter(context, sandboxID);
  try {
    return await run(context, inside, rest, options);
  } catch (error) {
    throw insideFailure(error, sandboxID);
  }
};

async function run(context: Context, inside: Inside, words: readonly string[], options: Options): Promise<number> {
  const [cmd = "", ...args] = words;
  const { stdin } = context.streams;
  const hasInput = options.detach !== true && stdin.isTTY !== true;
  const following = new AbortController();
  const events = inside.process.start(
    {
      process: { cmd, args, envs: { ...options.env }, ...(options.cwd === undefined ? {} : { cwd: options.cwd }) },
      stdin: hasInput,
    },
    inside.as(options.user, { signal: following.signal }),
  );
  const arriving = events[Symbol.asyncIterator]();
  const next = async (): Promise<Event | undefined> => {
    const { done, value } = await arriving.next();
    return done === true ? undefined : (value.event?.event ?? { case: undefined });
  };
  const pid = await untilStarted(next);
  if (options.detach === true) {
    await context.out.line(String(pid));
    following.abort();
    return 0;
  }
  const ends = new AbortController();
  const stopped = stopping(context, inside, { pid, options, over: ends.signal });
  // A program that ends before its input does, as `head`, leaves the rest unread: that is no failure.
  const fed = hasInput
    ? pipeInput(inside, pid, stdin, inside.as(options.user, { signal: ends.signal })).catch(() => undefined)
    : undefined;
  try {
    return await follow(context, next, stopped);
  } finally {
    ends.abort();
    stdin.destroy();
    await fed;
  }
}

async function untilStarted(next: () => Promise<Event | undefined>): Promise<number> {
  for (;;) {
    const event = await next();
    if (event === undefined) throw new Failure("the connection ended before the program started");
    if (event.case === "start") return event.value.pid;
  }
}

/** @param stopped why the program was ended from here, if it was */
async function follow(
  { streams }: Context,
  next: () => Promise<Event | undefined>,
  stopped: { code: number | undefined },
): Promise<number> {
  let code: number | undefined;
  for (let event = await next(); event !== undefined; event = await next()) {
    if (event.case === "data") {
      const { output } = event.value;
      if (output.case === "stdout") await written(streams.stdout, output.value);
      else if (output.case === "stderr") await written(streams.stderr, output.value);
    } else if (event.case === "end") {
      const { exited, exitCode, status } = event.value;
      code = exited ? exitCode : 128 + (SIGNALS[status] ?? SIGTERM);
    }
  }
  if (code === undefined) throw new Failure("the connection ended before the program did");
  return stopped.code ?? code;
}

/** Waits for a slow reader. One that has gone ends the command, and so the program: what it still writes is dropped. */
function written(stream: NodeJS.WritableStream, data: Uint8Array): Promise<void> | void {
  if (stream.write(data)) return;
  return new Promise((resolve) => {
    const onEither = () => {
      stream.off("drain", onEither);
      stream.off("error", onEither);
      resolve();
    };
    stream.once("drain", onEither).once("error", onEither);
  });
}

interface Stopping {
  readonly pid: number;
  readonly options: Options;
  /** Aborted when the program has ended. */
  readonly over: AbortSignal;
}

/** Ends the program when the user ends the command, and when its time is over: first with SIGTERM, then with SIGKILL. */
function stopping(context: Context, inside: Inside, { pid, options, over }: Stopping): { code: number | undefined } {
  const stopped: { code: number | undefined } = { code: undefined };
  const end = async (code: number) => {
    stopped.code ??= code;
    const selector = { case: "pid" as const, value: pid };
    for (const signal of [SIGTERM, SIGKILL]) {
      const call = inside.as(options.user, { timeoutMs: GRACE_MS });
      await inside.process.sendSignal({ process: { selector }, signal }, call).catch(() => undefined);
      await sleep(GRACE_MS, undefined, { signal: over }).catch(() => undefined);
      if (over.aborted) return;
    }
  };
  const onEnd = () => void end((context.signal.reason as Failure).exitCode);
  // It may have been ended while the program was started.
  if (context.signal.aborted) onEnd();
  else context.signal.addEventListener("abort", onEnd, { once: true });
  over.addEventListener("abort", () => context.signal.removeEventListener("abort", onEnd), { once: true });
  if (options.timeout !== undefined) {
    const timer = setTimeout(() => void end(EXIT.timedOut), options.timeout * 1000);
    over.addEventListener("abort", () => clearTimeout(timer), { once: true });
  }
  return stopped;
}
