/** What a command that follows something does while the platform does not answer. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EXIT, Failure } from "../../../cli/failure.ts";
import { patient } from "../../../cli/output/watch.ts";

const AWAY = new Failure("cannot reach http://127.0.0.1:3000: ECONNREFUSED");
const away = () => Promise.reject(AWAY);
const here = () => Promise.resolve("here");

let notes: string[];
beforeEach(() => {
  vi.useFakeTimers();
  notes = [];
});
afterEach(() => vi.useRealTimers());

const asking = (patience?: Parameters<typeof patient>[1], signal = new AbortController().signal) =>
  patient({ out: { note: (text: string) => void notes.push(text) }, signal }, patience);

test("it is asked again, which is said once for each time that it is away", async () => {
  const asked = asking();
  const answers: unknown[] = [];
  for (const ask of [away, away, here, away]) answers.push(await asked(ask));
  expect(answers).toEqual([undefined, undefined, "here", undefined]);
  expect(notes).toEqual([`${AWAY.message}: trying again`, `${AWAY.message}: trying again`]);
});

test("what it refuses is not asked again, and nothing after the user has ended the command", async () => {
  const refused = new Failure("no such build", { exitCode: EXIT.notFound });
  await expect(asking()(() => Promise.reject(refused))).rejects.toBe(refused);
  await expect(asking({}, AbortSignal.abort())(away)).rejects.toBe(AWAY);
  expect(notes).toEqual([]);
});

test("where nothing was asked before, the first failure counts", async () => {
  await expect(asking({ isFirst: true })(away)).rejects.toBe(AWAY);
  expect(notes).toEqual([]);
  const asked = asking({ isFirst: true });
  await asked(here);
  expect(await asked(away)).toBeUndefined();
});

test("it may be away for a time, which begins anew with each answer", async () => {
  const asked = asking({ longestMs: 60_000 });
  await asked(away);
  vi.advanceTimersByTime(59_000);
  expect(await asked(away)).toBeUndefined();
  await asked(here);
  vi.advanceTimersByTime(59_000);
  expect(await asked(away)).toBeUndefined();
  vi.advanceTimersByTime(60_000);
  await expect(asked(away)).rejects.toBe(AWAY);
});
