/** The connection of one kernel: its file, its ipc sockets, and the requests that go out. The only importer of zeromq. */

import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Dealer, Subscriber } from "zeromq";
import { decode, encode, type Message } from "./wire.ts";

/**
 * Messages of iopub that wait in this process. What does not fit waits in the kernel: a slow client must not fill our
 * memory.
 */
const MOST_WAITING = 2;
/** Time between two tries to connect to a socket that the kernel has not made yet, milliseconds. */
const RETRY_MS = 20;

let kernels = 0;

export class Sockets {
  /** The connection file, which the kernel reads at its start. */
  readonly file: string;
  readonly #directory: string;
  readonly #key = randomBytes(32).toString("hex");
  readonly #session = randomBytes(16).toString("hex");
  readonly #shell = new Dealer({ linger: 0, reconnectInterval: RETRY_MS });
  readonly #iopub = new Subscriber({ receiveHighWaterMark: MOST_WAITING, reconnectInterval: RETRY_MS });
  #requests = 0;

  /** @param runtime a directory that only this user can enter; the path of a socket has at most 107 bytes */
  constructor(runtime: string) {
    kernels += 1;
    this.#directory = join(runtime, `${process.pid}-${kernels}`);
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    this.file = join(this.#directory, "connection.json");
    const ip = join(this.#directory, "s");
    const connection = {
      transport: "ipc",
      ip,
      shell_port: 1,
      iopub_port: 2,
      stdin_port: 3,
      control_port: 4,
      hb_port: 5,
      key: this.#key,
      signature_scheme: "hmac-sha256",
      kernel_name: "",
    };
    writeFileSync(this.file, JSON.stringify(connection), { mode: 0o600 });
    this.#iopub.subscribe();
    this.#iopub.connect(`ipc://${ip}-2`);
    this.#shell.connect(`ipc://${ip}-1`);
  }

  /** The id of a request, which its answers name as their parent. They can come before `send` is fulfilled. */
  nextId(): string {
    this.#requests += 1;
    return `${this.#session}-${this.#requests}`;
  }

  async send(id: string, type: string, content: object): Promise<void> {
    await this.#shell.send(encode(this.#key, { id, type, session: this.#session, content }));
  }

  /** Hands on each message of iopub, the next one when the previous one was taken. Ends with `close`. */
  async readOutput(take: (message: Message) => Promise<void>): Promise<void> {
    for await (const frames of this.#iopub) {
      const message = decode(this.#key, frames);
      if (message !== undefined) await take(message);
    }
  }

  /** Hands on each reply. Ends with `close`. */
  async readReplies(take: (message: Message) => void): Promise<void> {
    for await (const frames of this.#shell) {
      const message = decode(this.#key, frames);
      if (message !== undefined) take(message);
    }
  }

  close(): void {
    this.#shell.close();
    this.#iopub.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
