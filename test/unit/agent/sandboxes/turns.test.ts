/** Turns of boots and restores on a node: who waits, for how long, and who comes first afterwards. */

import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "../../../../agent/sandboxes/pool/turns.ts";
import { createSemaphore } from "../../../../shared/program/semaphore.ts";

const { signal } = new AbortController();
const OWNER = "p1";

/** One turn, which somebody has. Each look at the clock is a millisecond later. */
async function taken(queueMs: number) {
  const clock = { at: 0 };
  const turns = createTurns({ semaphore: createSemaphore(1), queueMs, now: () => clock.at++ });
  const giveBack = await turns.take({ owner: OWNER, executionId: "holder" }, signal);
  return { turns, giveBack };
}

test("a start that has waited its time is refused as busy, and comes before later ones when it is asked for again", async () => {
  const { turns, giveBack } = await taken(500);
  const ask = (executionId: string) =>
    turns.take({ owner: OWNER, executionId }, signal).then((release) => ({ executionId, release }));
  await expect(ask("early")).rejects.toMatchObject({ code: "node_busy" });
  const [late, early] = [ask("late"), ask("early")];
  giveBack();
  const first = await Promise.race([late, early]);
  expect(first.executionId).toBe("early");
  first.release();
  (await late).release();
  expect(turns.busy).toBe(0);
});

test("what the node makes for itself waits for its turn without a limit", async () => {
  const { turns, giveBack } = await taken(10);
  const entry = turns.take({ owner: undefined }, signal);
  await delay(50);
  giveBack();
  (await entry)();
  expect(turns.busy).toBe(0);
});

test("a start that is stopped while it waits ends with the reason of its stop, and leaves the line", async () => {
  const { turns, giveBack } = await taken(60_000);
  const stop = new AbortController();
  const waits = turns.take({ owner: OWNER, executionId: "stopped" }, stop.signal);
  stop.abort(new Error("stopped"));
  await expect(waits).rejects.toThrow("stopped");
  giveBack();
  (await turns.take({ owner: OWNER, executionId: "next" }, signal))();
});
