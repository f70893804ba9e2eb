/** One stream of an orchestrator from its first line to its end: the routes go into the replica, the answers to who has asked. */

import { withDeadline } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import { type LineReader, lineReader } from "./lines.ts";
import { CURRENT_MS, type Line, type Result, type Said } from "./messages.ts";
import type { Replica } from "./replica.ts";
import type { RouteSource } from "./source.ts";

const PING_EVERY_MS = 200;
/** Without a line for so long the orchestrator is away, whatever the connection says. */
const SILENCE_MS = 10_000;
/** How long a stopping edge waits until the orchestrator has heard so. */
const LEAVE_MS = 1_000;
/** Routes that are asked for at once, because the stream did not name them. */
const FIND_AT_ONCE = 16;
/** How often it is asked for a sandbox that is about to be paused, resumed or killed. */
const FIND_TIMES = 30;
const FIND_EVERY_MS = 100;

interface ConversationDeps {
  readonly log: Log;
  readonly onHello: () => void;
}

export class Conversation {
  readonly name: string;
  readonly #source: RouteSource;
  readonly #replica: Replica;
  readonly #deps: ConversationDeps;
  readonly #cut = new AbortController();
  readonly #reader: LineReader = lineReader();
  readonly #questions = new Map<number, (result: Result | undefined) => void>();
  /** Sandboxes whose routes this stream has named, until it is whole. */
  #named: Set<string> | undefined = new Set();
  #outbox: Said[] = [];
  #isSending = false;
  #sent: Promise<void> = Promise.resolve();
  #hello: Extract<Line, { is: "hello" }> | undefined;
  #isWhole = false;
  #count = 0;
  /** When each question for a sign of life was asked, by its number. */
  readonly #pings = new Map<number, number>();
  #answeredPingAt = Number.NEGATIVE_INFINITY;
  #lineAt = performance.now();

  constructor(source: RouteSource, replica: Replica, deps: ConversationDeps) {
    this.#source = source;
    this.name = source.name;
    this.#replica = replica;
    this.#deps = deps;
  }

  get greeted(): boolean {
    return this.#hello !== undefined;
  }

  /** Whether every route has been there. */
  get isWhole(): boolean {
    return this.#isWhole && !this.#cut.signal.aborted;
  }

  get straight(): boolean {
    return this.#hello?.straight === true;
  }

  get docsUrl(): string | undefined {
    return this.#hello?.docsUrl;
  }

  /**
   * Whether every removal is known that an orchestrator has carried out without waiting for this edge. Counted from when the edge has
   * asked, so that no delay between the two counts for the edge.
   */
  isCurrent(): boolean {
    return this.isWhole && performance.now() - this.#answeredPingAt < CURRENT_MS;
  }

  /** Follows the stream until it ends. @throws the reason of its end */
  async run(stop: AbortSignal): Promise<void> {
    const { signal } = this.#cut;
    const end = () => this.#cut.abort(new Error("the edge stops"));
    stop.addEventListener("abort", end, { once: true });
    if (stop.aborted) end();
    const watching = setInterval(() => this.#watch(), PING_EVERY_MS);
    try {
      for await (const bytes of await this.#source.open(signal)) {
        this.#lineAt = performance.now();
        this.#reader.read(bytes, (line) => this.#take(line));
      }
      throw new Error("the orchestrator has ended the stream of routes");
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      clearInterval(watching);
      stop.removeEventListener("abort", end);
      this.#cut.abort(new Error("the stream of routes has ended"));
      for (const settle of this.#questions.values()) settle(undefined);
      this.#questions.clear();
    }
  }

  /** Undefined: the stream has ended, or no answer came in time. */
  ask(question: (number: number) => Said, limitMs: number): Promise<Result | undefined> {
    if (this.#cut.signal.aborted) return Promise.resolve(undefined);
    const number = ++this.#count;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle({ is: "failed" }), limitMs);
      const settle = (result: Result | undefined) => {
        clearTimeout(timer);
        this.#questions.delete(number);
        resolve(result);
      };
      this.#questions.set(number, settle);
      this.#say(question(number));
    });
  }

  /** Lets nothing at the orchestrator wait for this edge. */
  async leave(): Promise<void> {
    this.#isWhole = false;
    this.#say({ is: "leave" });
    await withDeadline(this.#sent, LEAVE_MS, () => undefined);
  }

  #take(line: Line): void {
    switch (line.is) {
      case "hello":
        this.#hello = line;
        this.#deps.onHello();
        this.#ping();
        return;
      case "node":
        this.#replica.node(line);
        return;
      case "route":
        this.#named?.add(line.sandboxId);
        void this.#replica.learn(line);
        return;
      case "whole":
        void this.#complete();
        return;
      case "removed":
        void this.#remove(line);
        return;
      case "answer":
        this.#questions.get(line.number)?.(line.result);
        return;
      case "pong": {
        const askedAt = this.#pings.get(line.number);
        this.#pings.delete(line.number);
        if (askedAt !== undefined) this.#answeredPingAt = Math.max(this.#answeredPingAt, askedAt);
      }
    }
  }

  async #remove({ number, sandboxId, executionId, reason }: Extract<Line, { is: "removed" }>): Promise<void> {
    this.#named?.delete(sandboxId);
    await this.#replica.remove(sandboxId, executionId, reason);
    this.#say({ is: "done", number });
  }

  /**
   * Asks for each route that this stream did not name: its sandbox may have ended while no orchestrator was followed, or this
   * orchestrator has not heard of it yet. No stream is cut before the answer.
   */
  async #complete(): Promise<void> {
    const named = this.#named ?? new Set();
    this.#named = undefined;
    const unnamed = [...this.#replica.running()].filter(({ sandboxId }) => !named.has(sandboxId));
    for (let at = 0; at < unnamed.length; at += FIND_AT_ONCE) {
      await Promise.all(unnamed.slice(at, at + FIND_AT_ONCE).map((route) => this.#find(route)));
    }
    if (this.#cut.signal.aborted) return;
    this.#isWhole = true;
    this.#deps.log.info(
      { orchestrator: this.name, routes: this.#replica.size },
      "following the routes of an orchestrator",
    );
  }

  async #find({ sandboxId, executionId }: { readonly sandboxId: string; readonly executionId: string }): Promise<void> {
    for (let times = 0; ; times++) {
      const result = await this.ask((number) => ({ is: "find", number, sandboxId }), SILENCE_MS);
      // Where it runs, its route came before the answer.
      if (result === undefined || result.is === "running") return;
      if (result.is === "failed") {
        this.#cut.abort(new Error(`the orchestrator cannot say what became of sandbox ${sandboxId}`));
        return;
      }
      if (result.is !== "transitioning" || times === FIND_TIMES) {
        await this.#replica.remove(sandboxId, executionId, result.is === "paused" ? "paused" : "killed");
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, FIND_EVERY_MS));
    }
  }

  #watch(): void {
    const silent = performance.now() - this.#lineAt;
    if (silent > SILENCE_MS) {
      this.#cut.abort(new Error(`the orchestrator has sent nothing for ${Math.round(silent)} ms`));
    } else if (this.greeted) this.#ping();
  }

  #ping(): void {
    // A call is under way that is not answered: more questions would only wait behind it.
    if (this.#isSending) return;
    const number = ++this.#count;
    this.#pings.set(number, performance.now());
    this.#say({ is: "ping", number });
  }

  #say(message: Said): void {
    this.#outbox.push(message);
    if (this.#isSending) return;
    this.#isSending = true;
    this.#sent = this.#send();
  }

  async #send(): Promise<void> {
    const { signal } = this.#cut;
    while (this.#outbox.length > 0 && this.#hello !== undefined && !signal.aborted) {
      const said = this.#outbox;
      this.#outbox = [];
      try {
        await this.#source.say(this.#hello.followerId, said, signal);
      } catch (error) {
        this.#cut.abort(error);
      }
    }
    this.#isSending = false;
  }
}
