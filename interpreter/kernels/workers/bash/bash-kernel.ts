/** A bash on a terminal of its own, which util-linux's `script` makes. Its stderr is in its stdout, as on any terminal. */

import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { setImmediate as turn } from "node:timers/promises";
import { Interruption } from "../../interruption.ts";
import {
  type Changes,
  type Emit,
  type Kernel,
  type KernelEnd,
  KernelEnded,
  type Launch,
  onceReady,
} from "../../kernel.ts";
import { KernelProcess } from "../../process.ts";
import { Lines, Marks } from "./marks.ts";
import { BEGUN, changeScript, runLine, settings } from "./shell.ts";

const GRACE_MS = 5_000;
const START_MS = 30_000;
/** A line that does not end is handed on after this time: a prompt, a progress bar. */
const PART_OF_LINE_MS = 500;
const ENDED_ITSELF = "`exit`, and a command that fails after `set -e`, end the shell";
/** Ctrl-C, which the terminal makes a SIGINT of what runs in its foreground. */
const CTRL_C = "\u0003";
/** For programs that would wait for a key, or draw with control characters. */
const TERMINAL = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat" };

let shells = 0;

/** @throws {KernelEnded}, Error when the shell does not answer in time */
export async function startBash({ cwd, environment, runtime }: Launch): Promise<Kernel> {
  shells += 1;
  const directory = join(runtime, `bash-${process.pid}-${shells}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const nonce = randomBytes(16).toString("hex");
  const rc = join(directory, "rc");
  writeFileSync(rc, settings(nonce));
  const initial = { ...TERMINAL, ...environment };
  const shell = new KernelProcess(
    ["script", "-q", "-e", "-f", "-E", "never", "-c", `exec bash --noediting --rcfile '${rc}' -i`, "/dev/null"],
    { cwd, environment: { ...initial, SHELL: "/bin/sh" }, stdio: ["pipe", "pipe", "pipe"], keepsErrors: true },
  );
  const kernel = new BashKernel({ directory, nonce, shell, environment: initial });
  return onceReady(kernel);
}

interface Parts {
  readonly directory: string;
  readonly nonce: string;
  readonly shell: KernelProcess;
  readonly environment: Readonly<Record<string, string>>;
}

class BashKernel implements Kernel {
  readonly graceMs = GRACE_MS;
  readonly environment: Readonly<Record<string, string>>;
  readonly ended: Promise<KernelEnd>;
  readonly #shell: KernelProcess;
  readonly #file: string;
  readonly #lines = new Lines();
  readonly #interruption = new Interruption(() => (this.#shell.child.stdin as Writable).write(CTRL_C));
  #emit: Emit | undefined;
  #number = 0;
  #runs = 0;
  #answer: (status: number) => void = () => undefined;
  #started: Promise<number>;
  #flush: NodeJS.Timeout | undefined;
  /** When the line that has not ended began, milliseconds. */
  #lineBegan = 0;

  constructor({ directory, nonce, shell, environment }: Parts) {
    this.environment = environment;
    this.#shell = shell;
    this.#file = join(directory, "cell");
    this.#started = new Promise((resolve) => (this.#answer = resolve));
    shell.child.stdin?.on("error", () => undefined);
    const reading = this.#read(shell.child.stdout as Readable, new Marks(nonce));
    this.ended = shell.ended.then(async (end) => {
      await Promise.race([reading, turn().then(() => turn())]);
      rmSync(directory, { recursive: true, force: true });
      // It says nothing itself, and a cell is not expected to end it.
      return end.code !== null && end.said.trim() === "" ? { ...end, said: ENDED_ITSELF } : end;
    });
  }

  async ready(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the shell did not start within ${START_MS / 1_000} s`)), START_MS);
    });
    await Promise.race([this.#started, this.#rejectedAtEnd(), late]).finally(() => clearTimeout(timer));
  }

  async run(code: string, emit: Emit): Promise<void> {
    this.#runs += 1;
    await emit({ type: "count", count: this.#runs });
    this.#emit = emit;
    this.#interruption.sent();
    try {
      const status = await this.#command(code);
      if (status !== 0) await emit({ type: "error", name: "", value: String(status), traceback: "" });
    } finally {
      this.#interruption.over();
      this.#emit = undefined;
    }
  }

  async change(changes: Changes): Promise<void> {
    const status = await this.#command(changeScript(changes, seed()));
    if (status !== 0) throw new Error(`the shell answered with exit status ${status}`);
  }

  interrupt(): void {
    this.#interruption.interrupt();
  }

  async stop(): Promise<void> {
    await this.#shell.kill();
  }

  async #command(script: string): Promise<number> {
    this.#number += 1;
    writeFileSync(this.#file, script, { mode: 0o600 });
    const answered = new Promise<number>((resolve) => (this.#answer = resolve));
    (this.#shell.child.stdin as Writable).write(runLine(this.#number, this.#file));
    return Promise.race([answered, this.#rejectedAtEnd()]);
  }

  async #rejectedAtEnd(): Promise<never> {
    throw new KernelEnded(await this.ended);
  }

  async #read(output: Readable, marks: Marks): Promise<void> {
    const decoder = new StringDecoder("utf8");
    for await (const piece of output as AsyncIterable<Buffer>) {
      clearTimeout(this.#flush);
      for (const part of marks.feed(decoder.write(piece))) {
        if ("text" in part) await this.#print(this.#linesOf(part.text));
        else if (part.done !== String(this.#number)) continue;
        else if (part.status === BEGUN) this.#interruption.begun();
        else {
          await this.#print(this.#lines.flush());
          this.#answer(part.status);
        }
      }
      const left = this.#lineBegan + PART_OF_LINE_MS - Date.now();
      this.#flush = setTimeout(() => void this.#print(this.#lines.flush()), Math.max(left, 0));
    }
    clearTimeout(this.#flush);
    await this.#print(this.#lines.flush());
  }

  /** A progress bar goes on writing to one line: the line's time counts from its beginning. */
  #linesOf(text: string): string[] {
    const continues = !this.#lines.isWhole;
    const lines = this.#lines.feed(text);
    if (!continues || lines.length > 0) this.#lineBegan = Date.now();
    return lines;
  }

  async #print(lines: readonly string[]): Promise<void> {
    for (const text of lines) await this.#emit?.({ type: "output", stream: "stdout", text });
  }
}

/** From the kernel's generator: that of node:crypto is in this memory, and copies of the sandbox would get one seed. */
function seed(): number {
  const bytes = Buffer.alloc(4);
  const source = openSync("/dev/urandom", "r");
  try {
    readSync(source, bytes);
  } finally {
    closeSync(source);
  }
  return bytes.readUInt32BE();
}
