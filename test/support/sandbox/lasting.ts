/**
 * Sandboxes that a test finds again: a process of each keeps a word and a count in its memory and writes both to a file in
 * memory twice a second, without starting another process; a file on the disk has the word too.
 */

import { randomUUID } from "node:crypto";
import { Sandbox } from "e2b";
import { expect } from "vitest";

export interface Lasting {
  readonly id: string;
  readonly word: string;
  readonly pid: number;
  /** The last count that the test has seen: a process of another memory would begin anew. */
  count: number;
}

const FILE = "/dev/shm/lasting";
const HOUR_MS = 3_600_000;
/** Sandboxes that are worked on at a time: the machines of tests are small. */
const AT_ONCE = 4;

export async function createLasting(count: number): Promise<Lasting[]> {
  return inTurn(Array.from({ length: count }), async () => {
    const word = randomUUID();
    const sandbox = await Sandbox.create({ timeoutMs: HOUR_MS, metadata: { word } });
    const lasting = { id: sandbox.sandboxId, word, pid: await startCounting(sandbox, word), count: 0 };
    await expect.poll(() => grown(sandbox, lasting)).toBe(true);
    return lasting;
  });
}

/** Starts the process that counts, and resolves to its id. Asked again, the first one that was started goes on. */
export async function startCounting(sandbox: Sandbox, word: string): Promise<number> {
  await sandbox.files.write("word.txt", word);
  const script =
    `mkfifo /tmp/wait || exit 0; exec 9<>/tmp/wait; word=${word}; n=0; ` +
    `while :; do n=$((n+1)); echo "$word $n" >${FILE}; read -rt 0.5 -u 9; done`;
  const handle = await sandbox.commands.run(script, { background: true, timeoutMs: 0 });
  await handle.disconnect();
  return handle.pid;
}

export async function pauseAll(lasting: readonly Lasting[]): Promise<void> {
  await inTurn(lasting, ({ id }) => Sandbox.pause(id));
}

/** Connects to each, which resumes a paused one: the same process goes on counting in the same memory, beside the same file. */
export async function expectAllThere(lasting: readonly Lasting[], apiKey: string): Promise<void> {
  await inTurn(lasting, async (one) => {
    const sandbox = await Sandbox.connect(one.id, { apiKey, timeoutMs: HOUR_MS });
    expect((await sandbox.getInfo()).metadata).toEqual({ word: one.word });
    expect(await sandbox.files.read("word.txt")).toBe(one.word);
    await expect.poll(() => grown(sandbox, one)).toBe(true);
    await sandbox.commands.run(`kill -0 ${one.pid}`);
  });
}

/** Calls `work` for all, a few at a time. */
export async function inTurn<One, Result>(all: readonly One[], work: (one: One) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  const left = [...all.entries()];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** Whether the count is higher than the last one that was seen; throws when another word is there. */
export async function grown(sandbox: Sandbox, lasting: Lasting): Promise<boolean> {
  const [word, count] = (await sandbox.commands.run(`cat ${FILE} || true`)).stdout.trim().split(" ");
  // The process is just writing the file.
  if (word === "" || count === undefined) return false;
  if (word !== lasting.word) throw new Error(`sandbox ${lasting.id} has the memory of another: ${word ?? ""}`);
  const before = lasting.count;
  lasting.count = Math.max(before, Number(count));
  return before > 0 && Number(count) > before;
}
