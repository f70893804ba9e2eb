/** What is typed into a terminal, on its way to the shell. */

import { joined } from "../../base/joined.ts";
import { toBase64 } from "../envd.ts";

interface Telling {
  state(text: string): void;
  /** None goes before it: the signal of a new size makes bash lose a Ctrl-C and letters of the same moment. */
  ready(): Promise<unknown>;
}

/** As long as a silent stream is not taken for lost. A laptop that has slept has connections on which no answer comes. */
const LONGEST_MS = 60_000;

/** Input in its order: what is typed while a piece is on its way goes with the next piece. */
export function inputQueue(send: (base64: string, limit: AbortSignal) => Promise<unknown>, telling: Telling) {
  let held: Uint8Array[] = [];
  let isSending = false;

  async function sendPiece(bytes: Uint8Array): Promise<void> {
    const limit = new AbortController();
    // A large text takes its time on a slow line.
    const timer = setTimeout(() => limit.abort(new Error("nothing has answered")), LONGEST_MS + bytes.length);
    try {
      await send(toBase64(bytes), limit.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async function drain(): Promise<void> {
    isSending = true;
    try {
      while (held.length > 0) {
        await telling.ready();
        const pieces = held;
        held = [];
        await sendPiece(joined(pieces));
      }
    } catch (error) {
      held = [];
      // Envd answers when the program has taken it, and passes on what it has got already.
      telling.state(
        `what was typed last may not have arrived: ${error instanceof Error ? error.message : String(error)}`,
      );
    } finally {
      isSending = false;
    }
  }

  return {
    add(bytes: Uint8Array): void {
      held.push(bytes);
      if (!isSending) void drain();
    },
  };
}
