/** A kernel that is a worker of ours: commands and events are lines of JSON on pipes. */

import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { setImmediate as turn } from "node:timers/promises";
import { Interruption } from "../interruption.ts";
import { type Bundle, type Changes, type Emit, type Kernel, type KernelEnd, KernelEnded } from "../kernel.ts";
import type { KernelProcess } from "../process.ts";

export interface LineKernelSpec {
  readonly process: KernelProcess;
  readonly environment: Readonly<Record<string, string>>;
  readonly commands: Writable;
  readonly events: Readable;
  /** What programs of the cell write without the worker. */
  readonly prints: readonly { readonly stream: "stdout" | "stderr"; readonly from: Readable }[];
  readonly graceMs: number;
  readonly runLine: (code: string) => string;
  readonly changeLine: (changes: Changes) => string;
}

type WorkerEvent =
  | readonly ["ready"]
  | readonly ["count", number]
  | readonly ["output", "stdout" | "stderr", string]
  | readonly ["result", boolean, Readonly<Record<string, unknown>>]
  | readonly ["error", string, string, string]
  | readonly ["end"]
  | readonly ["changed", string | null];

const START_MS = 60_000;

export class LineKernel implements Kernel {
  readonly ended: Promise<KernelEnd>;
  readonly environment: Readonly<Record<string, string>>;
  readonly graceMs: number;
  readonly #spec: LineKernelSpec;
  readonly #interruption = new Interruption(() => this.#spec.process.signal("SIGINT"));
  #emit: Emit | undefined;
  /** Answers the command under way, undefined for success. */
  #answer: (failure: string | undefined) => void = () => undefined;
  readonly #started: Promise<void>;
  #printed = 0;

  constructor(spec: LineKernelSpec) {
    const { process, events, prints } = spec;
    this.#spec = spec;
    this.environment = spec.environment;
    this.graceMs = spec.graceMs;
    spec.commands.on("error", () => undefined);
    this.#started = new Promise((resolve) => (this.#answer = () => resolve()));
    const readers = [this.#readEvents(events), ...prints.map(({ stream, from }) => this.#readPrints(stream, from))];
    // A run would wait for ever for what is not read any more: the kernel ends with its reader, and not the server.
    const reading = readers.map((reader) => reader.catch(() => process.kill()));
    // What the worker wrote before its end still counts; a program that it left behind may keep the pipes open.
    this.ended = process.ended.then(async (end) => {
      await Promise.race([Promise.allSettled(reading), turn().then(() => turn())]);
      return end;
    });
  }

  /** @throws {KernelEnded}, Error when the worker does not answer in time */
  async ready(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the kernel did not start within ${START_MS / 1_000} s`)), START_MS);
    });
    await Promise.race([this.#started, this.#rejectedAtEnd(), late]).finally(() => clearTimeout(timer));
  }

  async run(code: string, emit: Emit): Promise<void> {
    this.#emit = emit;
    this.#interruption.sent();
    try {
      await this.#command(this.#spec.runLine(code));
    } finally {
      this.#interruption.over();
      this.#emit = undefined;
    }
  }

  async change(changes: Changes): Promise<void> {
    const failure = await this.#command(this.#spec.changeLine(changes));
    if (failure !== undefined) throw new Error(failure);
  }

  interrupt(): void {
    this.#interruption.interrupt();
  }

  async stop(): Promise<void> {
    await this.#spec.process.kill();
  }

  async #command(line: string): Promise<string | undefined> {
    const answered = new Promise<string | undefined>((resolve) => (this.#answer = resolve));
    this.#spec.commands.write(line);
    return Promise.race([answered, this.#rejectedAtEnd()]);
  }

  async #rejectedAtEnd(): Promise<never> {
    throw new KernelEnded(await this.ended);
  }

  async #readEvents(events: Readable): Promise<void> {
    const decoder = new StringDecoder("utf8");
    let rest: string[] = [];
    for await (const piece of events as AsyncIterable<Buffer>) {
      const lines = decoder.write(piece).split("\n");
      rest.push(lines.shift() ?? "");
      for (const next of lines) {
        const line = rest.join("");
        rest = [next];
        const event = eventIn(line);
        if (event !== undefined) await this.#take(event);
      }
    }
  }

  async #take(event: WorkerEvent): Promise<void> {
    switch (event[0]) {
      case "count":
        this.#interruption.begun();
        await this.#emit?.({ type: "count", count: event[1] });
        return;
      case "output":
        await this.#emit?.({ type: "output", stream: event[1], text: event[2] });
        return;
      case "result":
        await this.#emit?.({ type: "result", main: event[1], bundle: textOf(event[2]) });
        return;
      case "error":
        await this.#emit?.({ type: "error", name: event[1], value: event[2], traceback: event[3] });
        return;
      case "ready":
        this.#answer(undefined);
        return;
      case "end":
        await this.#allPrinted();
        this.#answer(undefined);
        return;
      case "changed":
        this.#answer(event[1] ?? undefined);
    }
  }

  /** What programs wrote before the worker's last event is in their pipes: reads on until nothing more comes. */
  async #allPrinted(): Promise<void> {
    let before: number;
    do {
      before = this.#printed;
      await turn();
      await turn();
    } while (this.#printed !== before);
  }

  async #readPrints(stream: "stdout" | "stderr", from: Readable): Promise<void> {
    const decoder = new StringDecoder("utf8");
    for await (const piece of from as AsyncIterable<Buffer>) {
      this.#printed += 1;
      const text = decoder.write(piece);
      if (text !== "") await this.#emit?.({ type: "output", stream, text });
    }
  }
}

/** Undefined for a line that the worker did not write: a cell can write to the worker's pipe. */
function eventIn(line: string): WorkerEvent | undefined {
  try {
    const event: unknown = JSON.parse(line);
    return Array.isArray(event) && isWhole(event) ? (event as unknown as WorkerEvent) : undefined;
  } catch {
    return undefined;
  }
}

function isWhole([type, , bundle]: readonly unknown[]): boolean {
  return type !== "result" || (typeof bundle === "object" && bundle !== null);
}

function textOf(bundle: Readonly<Record<string, unknown>>): Bundle {
  return new Map(Object.entries(bundle).map(([mime, value]) => [mime, JSON.stringify(value)]));
}
