/** One run of the egress process: starts it, exchanges messages, ends it. process.ts starts the next run. */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Begin, FromEgress, ToEgress } from "../egress/channel/messages.ts";

/** An egress process that does not answer for this long is stuck: it answers at once even under load. */
const ANSWER_LIMIT_MS = 5_000;
const READY_LIMIT_MS = 15_000;
const END_LIMIT_MS = 2_000;

type EgressReply = Extract<FromEgress, { readonly is: "done" | "checked" }>;
type EgressRequest = Extract<ToEgress, { readonly is: "set" | "forget" | "check" }>;
/** Requests by kind, so that the types keep each kind's fields. */
type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;

export interface EgressChannel {
  /** Resolves when the process has put `begin` in force. */
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
  /** Rejects when the process refuses, is stuck (then it is killed) or dies. */
  ask(question: WithoutId<EgressRequest>): Promise<EgressReply>;
  send(message: ToEgress): void;
  /** Closes the channel, which ends the process; kills the process if it does not end. */
  stop(): Promise<void>;
}

export interface ChannelOptions {
  /** The program with its arguments; it is started with an IPC channel. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly begin: Begin;
  /** Messages that it sends without a request. */
  readonly onMessage: (message: Exclude<FromEgress, EgressReply>, reply: (message: ToEgress) => void) => void;
  readonly log: Log;
}

export function openChannel({ command, environment, begin, onMessage, log }: ChannelOptions): EgressChannel {
  const [program = "", ...parameters] = command;
  const child = spawn(program, parameters, { env: environment, stdio: ["ignore", "pipe", "pipe", "ipc"] });
  const waiting = new Map<number, { settle: (answer: EgressReply) => void; fail: (why: Error) => void }>();
  const state = { id: 0, over: false };
  // No process: `error` follows. Where descriptors were missing, there is no output either.
  if (child.pid !== undefined) relay(child, log);

  const send = (message: ToEgress) => {
    // The process may be gone already: callers that wait for an answer get an error.
    if (child.connected) child.send(message, () => undefined);
  };
  const over = later();
  const ready = later();
  ready.promise.catch(() => undefined);
  const late = setTimeout(() => child.kill("SIGKILL"), READY_LIMIT_MS);

  const end = (why: string) => {
    if (state.over) return;
    state.over = true;
    clearTimeout(late);
    const error = new AppError("unavailable", `the egress process ${why}`);
    ready.reject(error);
    for (const { fail } of waiting.values()) fail(error);
    waiting.clear();
    over.resolve();
  };
  child.once("error", (error) => end(`cannot be started: ${error.message}`));
  child.once("exit", (code, signal) => end(`ended with ${code ?? signal}`));
  child.once("disconnect", () => child.kill("SIGKILL"));
  child.on("message", (message: FromEgress) => {
    switch (message.is) {
      case "ready":
        clearTimeout(late);
        ready.resolve();
        break;
      case "done":
      case "checked":
        waiting.get(message.id)?.settle(message);
        break;
      case "failed":
        waiting.get(message.id)?.fail(new AppError("unavailable", `the egress process refused: ${message.message}`));
        break;
      case "resolve":
      case "used":
      case "decisions":
        onMessage(message, send);
    }
  });
  send(begin);

  return {
    ready: ready.promise,
    ended: over.promise,
    ask(question) {
      if (state.over) return Promise.reject(new AppError("unavailable", "the egress process does not run"));
      const id = state.id++;
      return new Promise((resolve, reject) => {
        const stuck = setTimeout(() => {
          log.error({ is: question.is }, "the egress process does not answer, killing it");
          child.kill("SIGKILL");
        }, ANSWER_LIMIT_MS);
        const finish = (act: () => void) => {
          clearTimeout(stuck);
          waiting.delete(id);
          act();
        };
        waiting.set(id, {
          settle: (answer) => finish(() => resolve(answer)),
          fail: (error) => finish(() => reject(error)),
        });
        send({ ...question, id });
      });
    },
    send,
    async stop() {
      if (child.connected) child.disconnect();
      const limit = setTimeout(() => child.kill("SIGKILL"), END_LIMIT_MS);
      await over.promise;
      clearTimeout(limit);
    },
  };
}

function later(): { readonly promise: Promise<void>; resolve(): void; reject(why: Error): void } {
  let settle: [() => void, (why: Error) => void] = [() => undefined, () => undefined];
  const promise = new Promise<void>((resolve, reject) => {
    settle = [resolve, reject];
  });
  return { promise, resolve: () => settle[0](), reject: (why) => settle[1](why) };
}

/** Adds the process's output to the agent's log: its log lines unchanged, anything else as a warning. */
function relay(child: ChildProcess, log: Log): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => {
      if (line.startsWith("{")) process.stdout.write(`${line}\n`);
      else log.warn({ said: line.slice(0, 2_000) }, "the egress process printed");
    });
  }
}
