/** The svc-exec child process and its socket: sends requests, receives replies and events in order, without interpreting them. */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { AppError } from "../../shared/http/errors.ts";
import { lateChildProcess } from "../runtime/late-builtins.ts";
import { nameOf } from "./file-names.ts";
import {
  Answer,
  type AnswerFrame,
  type AnswerReader,
  AnswerSplitter,
  encodeFrame,
  type Field,
  LARGEST_FRAME_BYTES,
} from "./frames.ts";

/** Called while the reply is parsed, before any frame that svc-exec sent after it. */
type OnReply<T> = (body: AnswerReader) => T;

export interface HelperEvents {
  readonly exited: (pid: number, waitStatus: number) => void;
  readonly notified: (wd: number, mask: number, name: string) => void;
  /** svc-exec ended, with everything it held. Called once, after every open request has failed. */
  readonly gone: () => void;
}

interface Waiting {
  readonly settle: (body: AnswerReader) => void;
  readonly fail: (error: Error) => void;
}

export class Helper {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #events: HelperEvents;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;

  private constructor(child: ChildProcess, socket: Duplex, events: HelperEvents) {
    this.#child = child;
    this.#socket = socket;
    this.#events = events;
    const splitter = new AnswerSplitter();
    socket.on("data", (chunk: Buffer) => {
      for (const frame of splitter.push(chunk)) this.#answered(frame);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => this.#lost());
  }

  /** @throws {AppError} resource_exhausted when the sandbox has no room for one more process, internal otherwise. */
  static async start(path: string, events: HelperEvents): Promise<Helper> {
    // Its own session: a signal to envd's group must not take the sandbox's programs along.
    const child = lateChildProcess().spawn(path, [], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
      env: {},
      cwd: "/",
      detached: true,
    });
    const failed = once(child, "error").then(([error]) => Promise.reject(cannotStart(error)));
    failed.catch(() => undefined);
    if (child.pid === undefined) return failed;
    const socket = child.stdio[3];
    if (!(socket instanceof Duplex)) throw new AppError("internal", "svc-exec has no control socket");
    // Neither keeps envd running: envd ends when its server is closed.
    child.unref();
    (socket as Socket).unref();
    return new Helper(child, socket, events);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return !this.#socket.destroyed;
  }

  /** @throws {AppError} resource_exhausted for a request that is too large, internal when svc-exec is gone. */
  request<T>(kind: number, fields: readonly Field[], onReply: OnReply<T>): Promise<T> {
    const id = this.#nextId;
    this.#nextId = (this.#nextId % 0x7fffffff) + 1;
    const frame = encodeFrame(kind, id, fields);
    if (frame.length > LARGEST_FRAME_BYTES)
      return Promise.reject(new AppError("resource_exhausted", "the request is too large"));
    if (!this.alive) return Promise.reject(helperLost());
    return new Promise<T>((resolve, reject) => {
      const settle = (body: AnswerReader) => {
        try {
          resolve(onReply(body));
        } catch (error) {
          reject(
            error instanceof Error ? error : new Error("svc-exec sent a frame that cannot be read", { cause: error }),
          );
        }
      };
      this.#waiting.set(id, { settle, fail: reject });
      this.#socket.write(frame);
    });
  }

  /** Sends a request without a reply. */
  tell(kind: number, fields: readonly Field[]): void {
    if (this.alive) this.#socket.write(encodeFrame(kind, 0, fields));
  }

  /** Ends svc-exec; resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#socket.destroy();
    await ended;
  }

  #answered({ kind, id, body }: AnswerFrame): void {
    switch (kind) {
      case Answer.exit:
        this.#events.exited(body.int(), body.int());
        return;
      case Answer.notify:
        this.#events.notified(body.int(), body.int(), nameOf(body.bytes()));
        return;
      default: {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        waiting?.settle(body);
      }
    }
  }

  #lost(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { fail } of waiting) fail(helperLost());
    this.#events.gone();
  }
}

function helperLost(): AppError {
  return new AppError("internal", "the process helper of the sandbox ended unexpectedly");
}

function cannotStart(cause: unknown): AppError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "EAGAIN" || code === "ENOMEM" || code === "EMFILE" || code === "ENFILE")
    return new AppError("resource_exhausted", "the sandbox has no room for another process", { cause });
  return new AppError("internal", "the process helper of the sandbox does not start", { cause });
}
