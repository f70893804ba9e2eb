/** A kernel that speaks the Jupyter wire protocol: ipykernel, IRkernel. */

import { setTimeout as delay } from "node:timers/promises";
import { Interruption } from "../interruption.ts";
import {
  type Changes,
  type Emit,
  type Kernel,
  type KernelEnd,
  KernelEnded,
  type Launch,
  onceReady,
} from "../kernel.ts";
import { KernelProcess } from "../process.ts";
import { asksExit } from "./events.ts";
import { PendingRequest } from "./request.ts";
import { Sockets } from "./sockets.ts";

/** A kernel on a busy machine is ready after a few seconds. */
const START_MS = 60_000;
const ASK_EVERY_MS = 100;
/** What a kernel wrote before it died is in the sockets for a moment. */
const LAST_OUTPUT_MS = 100;
/** Long calls of extension modules notice an interrupt late, and the state of the context is worth waiting for. */
const GRACE_MS = 10_000;
/** A kernel that was told to exit is gone soon, unless a thread of the program keeps its process; it answers nothing then. */
const EXIT_MS = 2_000;

export interface JupyterLanguage {
  /** The command that starts the kernel with this connection file. */
  readonly command: (connectionFile: string) => readonly string[];
  /** Code that makes the changes when it runs silently. */
  readonly changeCode: (changes: Changes) => string;
}

/** Fulfilled when the kernel answers and its output arrives. @throws {KernelEnded}, Error when it does not answer in time */
export async function startJupyterKernel(language: JupyterLanguage, launch: Launch): Promise<Kernel> {
  const sockets = new Sockets(launch.runtime);
  const process = new KernelProcess(language.command(sockets.file), {
    cwd: launch.cwd,
    environment: launch.environment,
    stdio: ["ignore", "ignore", "pipe"],
    keepsErrors: true,
  });
  const kernel = new JupyterKernel(language, launch, { sockets, process });
  return onceReady(kernel);
}

class JupyterKernel implements Kernel {
  readonly graceMs = GRACE_MS;
  readonly environment: Readonly<Record<string, string>>;
  readonly ended: Promise<KernelEnd>;
  readonly #language: JupyterLanguage;
  readonly #sockets: Sockets;
  readonly #process: KernelProcess;
  #heard = false;
  #over: KernelEnd | undefined;
  readonly #pending = new Map<string, PendingRequest>();
  readonly #interruption = new Interruption(() => this.#process.signal("SIGINT"));

  constructor(
    language: JupyterLanguage,
    launch: Launch,
    { sockets, process }: { readonly sockets: Sockets; readonly process: KernelProcess },
  ) {
    this.#language = language;
    this.environment = launch.environment;
    this.#sockets = sockets;
    this.#process = process;
    // A reader ends with an error when its socket is closed under it, which is its ordinary end.
    sockets
      .readOutput(async (message) => {
        this.#heard = true;
        // One that cannot be read must not end the reader, which every later run waits for.
        await this.#pending
          .get(message.parent ?? "")
          ?.output(message)
          .catch(() => undefined);
      })
      .catch(() => undefined);
    sockets.readReplies((message) => this.#pending.get(message.parent ?? "")?.reply(message)).catch(() => undefined);
    this.ended = process.ended.then(async (end) => {
      await delay(LAST_OUTPUT_MS);
      this.#over = end;
      for (const pending of this.#pending.values()) pending.ended(end);
      sockets.close();
      return end;
    });
  }

  /** Asks until an answer has come over both sockets: what is published before the subscription is lost. */
  async ready(): Promise<void> {
    const limit = AbortSignal.timeout(START_MS);
    const heard = { reply: false };
    while (!heard.reply || !this.#heard) {
      // A kernel that ends rejects it; the loop sees the end itself.
      this.#request("kernel_info_request", {}).then(
        () => (heard.reply = true),
        () => undefined,
      );
      await Promise.race([delay(ASK_EVERY_MS), this.ended]);
      if (this.#over !== undefined) throw new KernelEnded(this.#over);
      if (limit.aborted) throw new Error(`the kernel did not answer within ${START_MS / 1_000} s`);
    }
  }

  async run(code: string, emit: Emit): Promise<void> {
    const content = { code, silent: false, store_history: true, user_expressions: {} };
    this.#interruption.sent();
    const observed: Emit = async (event) => {
      if (event.type === "count") this.#interruption.begun();
      await emit(event);
    };
    try {
      const options = { allow_stdin: false, stop_on_error: false };
      const reply = await this.#request("execute_request", { ...content, ...options }, observed);
      if (asksExit(reply)) await this.#exit();
    } finally {
      this.#interruption.over();
    }
  }

  async change(changes: Changes): Promise<void> {
    const content = { code: this.#language.changeCode(changes), silent: true, store_history: false };
    const reply = await this.#request("execute_request", { ...content, allow_stdin: false, stop_on_error: false });
    const { status, evalue } = JSON.parse(reply.toString()) as { readonly status?: string; readonly evalue?: string };
    if (status !== "ok") throw new Error(evalue ?? `the kernel answered ${status ?? "without a status"}`);
  }

  interrupt(): void {
    this.#interruption.interrupt();
  }

  async stop(): Promise<void> {
    await this.#process.kill();
    if (this.#process.over) await this.ended;
  }

  /** `exit()` ends the kernel behind its reply: the next run must not begin in it. */
  async #exit(): Promise<void> {
    await Promise.race([this.ended, delay(EXIT_MS)]);
    await this.stop();
  }

  async #request(type: string, content: object, emit?: Emit): Promise<Buffer> {
    if (this.#over !== undefined) throw new KernelEnded(this.#over);
    const pending = new PendingRequest(emit);
    const id = this.#sockets.nextId();
    this.#pending.set(id, pending);
    try {
      await this.#sockets.send(id, type, content);
      return await pending.done;
    } finally {
      this.#pending.delete(id);
    }
  }
}
