/** A terminal in a sandbox, over envd's PTY. After a cut it goes on with the same shell, which runs on meanwhile. */

import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessEvent } from "../../../shared/envd-rpc/gen/process_pb.js";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import { createEscapeKey } from "../../inside/escape-key.ts";
import { enter, type Inside, insideFailure, isCut } from "../../inside/sandbox.ts";
import type { Options } from "../../options.ts";

/** How long a cut may last. */
const LONGEST_CUT_MS = 120_000;
const AGAIN_MS = 1_000;
const SHELLS = ["/bin/bash", "/bin/sh"] as const;

type Stream = AsyncIterable<{ readonly event?: ProcessEvent | undefined }>;

export const connect: Action = async (context, { first: sandboxID }, options) => {
  const { stdin, stdout } = context.streams;
  if (stdin.isTTY !== true || stdout.isTTY !== true) {
    throw usage("a terminal is needed here", "`svc sandbox exec` runs a program without one");
  }
  const inside = await enter(context, sandboxID);
  const terminal = createTerminal(context, inside, options);
  try {
    return await terminal.run();
  } catch (error) {
    throw insideFailure(error, sandboxID);
  } finally {
    terminal.close();
  }
};

function createTerminal(context: Context, inside: Inside, options: Options) {
  const { streams, out, signal } = context;
  const left = new AbortController();
  const key = createEscapeKey();
  const whole = AbortSignal.any([left.signal, signal]);
  let pid = options.pid;
  /** What is typed before the shell runs. */
  const early: Uint8Array[] = [];
  let sending: Promise<void> = Promise.resolve();

  const call = (more: AbortSignal = whole) => inside.as(options.user, { signal: more });
  const size = () => ({ cols: streams.stdout.columns ?? 80, rows: streams.stdout.rows ?? 24 });
  const selected = () => ({ selector: { case: "pid" as const, value: pid ?? 0 } });

  /** Keys of a time without a connection are lost: sent twice, one that did arrive would be more than it was. */
  const send = (value: Uint8Array) => {
    sending = sending.then(async () => {
      const input = { input: { case: "pty" as const, value } };
      await inside.process.sendInput({ process: selected(), input }, call()).catch(() => undefined);
    });
  };
  const onKeys = (data: Buffer) => {
    const { data: keys, leaves } = key.take(data);
    if (keys.length > 0) {
      if (pid === undefined) early.push(keys);
      else send(keys);
    }
    if (leaves) left.abort();
  };
  const onResize = () => {
    if (pid === undefined) return;
    void inside.process.update({ process: selected(), pty: { size: size() } }, call()).catch(() => undefined);
  };

  async function* started(): AsyncGenerator<{ readonly event?: ProcessEvent | undefined }> {
    for (const [index, cmd] of SHELLS.entries()) {
      const process = {
        cmd,
        args: ["-i", "-l"],
        envs: { TERM: context.env["TERM"] ?? "xterm-256color", LANG: "C.UTF-8" },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      };
      try {
        yield* inside.process.start({ process, pty: { size: size() } }, call());
        return;
      } catch (error) {
        const isMissing = ConnectError.from(error).code === Code.NotFound && pid === undefined;
        if (!isMissing || index === SHELLS.length - 1) throw error;
      }
    }
  }

  /** The exit code of the shell. @throws what cut the stream */
  async function follow(stream: Stream, onStart: () => void): Promise<number> {
    for await (const { event } of stream) {
      const happened = event?.event;
      if (happened?.case === "start") {
        pid = happened.value.pid;
        for (const keys of early.splice(0)) send(keys);
        onStart();
      } else if (happened?.case === "data" && happened.value.output.case === "pty") {
        await out.bytes(happened.value.output.value);
      } else if (happened?.case === "end") {
        return happened.value.exited ? happened.value.exitCode : EXIT.failed;
      }
    }
    throw new ConnectError("the stream ended before the shell did", Code.Unavailable);
  }

  async function run(): Promise<number> {
    streams.stdin.setRawMode?.(true);
    streams.stdin.on("data", onKeys);
    streams.stdout.on("resize", onResize);
    let stream: Stream = pid === undefined ? started() : inside.process.connect({ process: selected() }, call());
    let cutAt: number | undefined;
    for (;;) {
      try {
        return await follow(stream, () => {
          if (cutAt !== undefined) out.note("\n[connected again]");
          cutAt = undefined;
          onResize();
        });
      } catch (error) {
        if (left.signal.aborted) return leave();
        if (signal.aborted || pid === undefined || !isCut(error)) throw error;
        if (cutAt === undefined) out.note("\n[the connection is cut: trying again; ~. leaves]");
        cutAt ??= Date.now();
        if (Date.now() - cutAt > LONGEST_CUT_MS) throw lost();
      }
      await sleep(AGAIN_MS, undefined, { signal: whole }).catch(() => undefined);
      if (left.signal.aborted) return leave();
      stream = inside.process.connect({ process: selected() }, call());
    }
  }

  function leave(): number {
    out.note(`\n[left; the shell runs on: svc sandbox connect ${inside.sandboxID} --pid ${pid ?? 0}]`);
    return 0;
  }

  function lost(): Failure {
    return new Failure(`sandbox ${inside.sandboxID} did not answer for ${LONGEST_CUT_MS / 1000} s`, {
      exitCode: EXIT.timedOut,
      wayOut: `when it does, the shell may still be there: svc sandbox connect ${inside.sandboxID} --pid ${pid ?? 0}`,
    });
  }

  return {
    run,
    close() {
      streams.stdin.off("data", onKeys);
      streams.stdin.pause();
      streams.stdin.setRawMode?.(false);
      streams.stdout.off("resize", onResize);
      left.abort();
    },
  };
}
