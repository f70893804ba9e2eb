/** Keeps the live screen of a sandbox open while the page is seen, as the terminal keeps its shell. */

import { anyOf, pause, untilVisible } from "../../base/stream.ts";
import { waitingText } from "../shell-failure.ts";
import { untilRuns } from "../until-runs.ts";
import { afterEnding, ServerEnded } from "./endings.ts";

const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

interface Telling {
  state(text: string): void;
  /** The live screen is given up, for this reason. */
  instead(why: unknown): void;
  /** The sandbox has ended. */
  ended(): void;
}

/** @param show opens it, and resolves when its signal is aborted */
export async function keepLive(
  id: string,
  show: (left: AbortSignal) => Promise<void>,
  telling: Telling,
  left: AbortSignal,
): Promise<void> {
  let wait = SHORTEST_WAIT_MS;
  let tries = 0;
  while (!left.aborted) {
    await untilVisible(left);
    const before = performance.now();
    try {
      await whileVisible(show, left);
      continue;
    } catch (error) {
      if (left.aborted) return;
      if (performance.now() - before > LONGEST_WAIT_MS) [wait, tries] = [SHORTEST_WAIT_MS, 0];
      if (error instanceof ServerEnded) tries++;
      if (afterEnding(error, tries) === "instead") {
        telling.instead(error);
        return;
      }
      telling.state(error instanceof ServerEnded ? `${error.message}; connecting again …` : waitingText(error));
    }
    await pause(wait, left);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    const still = () => telling.state("the sandbox stands still, connecting again …");
    if (!(await untilRuns(id, { still, ended: () => telling.ended() }, left))) return;
  }
}

async function whileVisible(show: (left: AbortSignal) => Promise<void>, left: AbortSignal): Promise<void> {
  const hidden = new AbortController();
  const hide = () => document.hidden && hidden.abort();
  document.addEventListener("visibilitychange", hide);
  try {
    await show(anyOf([left, hidden.signal]));
  } finally {
    document.removeEventListener("visibilitychange", hide);
  }
}
