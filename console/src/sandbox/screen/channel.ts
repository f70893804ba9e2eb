/**
 * A program of a sandbox in the form of a WebSocket, as noVNC takes one: what the program prints comes in, and what is sent goes to its
 * standard input. Nothing listens anywhere, and no address has a password.
 */

import { fromBase64 } from "../envd.ts";
import { inputQueue } from "../shell/input-queue.ts";
import { Refused } from "./endings.ts";
import type { Message, Outcome } from "./outcome.ts";

/** Input that waits for the piece before it. A mouse that moves for a minute makes half of it. */
const MOST_WAITING_BYTES = 64 * 1024;
/** The page draws what is in one piece without a pause. */
const PIECE_BYTES = 32 * 1024;
const MOST_ERROR_BYTES = 4_096;

interface Ways {
  /** To the program's standard input. */
  readonly send: (base64: string, limit: AbortSignal) => Promise<unknown>;
  /** A piece of input is lost, so nothing that follows would be understood. */
  readonly failed: (why: Error) => void;
}

export class ProgramChannel {
  binaryType = "arraybuffer";
  protocol = "";
  readyState: "connecting" | "open" | "closed" = "connecting";
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: Uint8Array }) => void) | null = null;
  onclose: ((event: object) => void) | null = null;
  onerror: ((event: object) => void) | null = null;

  readonly #ways: Ways;
  readonly #input: ReturnType<typeof inputQueue>;
  #waiting = 0;
  #isLost = false;

  constructor(ways: Ways) {
    this.#ways = ways;
    this.#input = inputQueue(
      (base64, limit) => {
        // All that waits goes with this piece.
        this.#waiting = 0;
        return ways.send(base64, limit);
      },
      { state: (text) => this.#lose(text), ready: () => Promise.resolve() },
    );
  }

  /** @param bytes are used again by the caller afterwards */
  send(bytes: Uint8Array): void {
    if (this.readyState !== "open" || this.#isLost) return;
    this.#waiting += bytes.length;
    if (this.#waiting > MOST_WAITING_BYTES) this.#lose("the screen's server does not take what the page sends");
    else this.#input.add(bytes.slice());
  }

  close(): void {
    if (this.readyState === "closed") return;
    this.readyState = "closed";
    // A WebSocket calls `onclose` after `close` has returned, so this channel does the same.
    queueMicrotask(() => this.onclose?.({}));
  }

  open(): void {
    if (this.readyState !== "connecting") return;
    this.readyState = "open";
    this.onopen?.();
  }

  /** @throws {Refused} */
  receive(data: Uint8Array): void {
    if (this.readyState !== "open") return;
    try {
      this.onmessage?.({ data });
    } catch (error) {
      throw error instanceof Refused
        ? error
        : new Refused(`The screen is not shown: ${String(error)}`, { cause: error });
    }
  }

  #lose(why: string): void {
    this.#isLost = true;
    this.#ways.failed(new Error(why));
  }
}

/**
 * Passes on what the program prints, until the program ends.
 * @param paced resolves when the page has time for the next piece, and fails when what came before is refused
 * @throws {Refused} @throws {Error} the stream has ended before the program
 */
export async function pump(
  messages: AsyncIterable<Message>,
  channel: ProgramChannel,
  paced: () => Promise<void>,
): Promise<Omit<Outcome, "output">> {
  let errors = "";
  for await (const { event } of messages) {
    if (event?.start !== undefined) channel.open();
    const { stdout, stderr } = event?.data ?? {};
    if (stdout !== undefined) {
      const bytes = fromBase64(stdout);
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        channel.receive(bytes.subarray(at, at + PIECE_BYTES));
        await paced();
      }
    }
    if (stderr !== undefined) errors = (errors + new TextDecoder().decode(fromBase64(stderr))).slice(-MOST_ERROR_BYTES);
    if (event?.end !== undefined) return { exitCode: event.end.exitCode ?? 0, errors };
  }
  throw new Error("the connection was lost");
}
