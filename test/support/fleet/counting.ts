/**
 * Sandboxes of a fleet that count, so that a test finds out whether they have gone on with their memory. What is away or busy at
 * the moment is asked again, at the next orchestrator and edge.
 */

import { randomUUID } from "node:crypto";
import { Sandbox } from "e2b";
import { until } from "../runner/until.ts";
import { grown, inTurn, type Lasting, startCounting } from "../sandbox/lasting.ts";
import type { Fleet } from "./fleet.ts";
import { insist, madeBy } from "./insist.ts";

const LIMIT_MS = 120_000;

/** Makes a sandbox that counts, through one orchestrator or the next. */
export async function createCounting(fleet: Fleet, by: number): Promise<Lasting> {
  const { last } = await insist(fleet, { kind: "create", id: "" }, by);
  return countIn(fleet, madeBy(last)[0] ?? "", by);
}

/** Starts the count in a sandbox. */
export async function countIn(fleet: Fleet, id: string, by: number): Promise<Lasting> {
  const one: Lasting = { id, word: randomUUID(), pid: 0, count: 0 };
  await speak(fleet, { id, by, edge: by, what: "the begin of a count" }, async (sandbox) => {
    return (await startCounting(sandbox, one.word)) > 0;
  });
  await expectGoesOn(fleet, one, by);
  return one;
}

/** Connects, which resumes a paused one: the same process goes on counting in the same memory, beside the same file. */
export function expectGoesOn(fleet: Fleet, one: Lasting, by: number, edge = by): Promise<void> {
  return speak(fleet, { id: one.id, by, edge, what: "a higher count" }, async (sandbox) => {
    const word = await sandbox.files.read("word.txt");
    if (word !== one.word) throw new Error(`the file says ${word}`);
    return grown(sandbox, one);
  });
}

/** Looks at all of them, through each orchestrator or through some. */
export async function allThere(
  fleet: Fleet,
  some: readonly Lasting[],
  through: readonly number[] = [...fleet.orchestrators.keys()],
): Promise<void> {
  for (const by of through) await inTurn(some, (one) => expectGoesOn(fleet, one, by));
}

/** What a command prints in a sandbox. It may run more than once: the orchestrator that is asked first may be away. */
export async function says(fleet: Fleet, id: string, command: string): Promise<string> {
  const said = { printed: "" };
  await speak(fleet, { id, by: 1, edge: 1, what: `the output of '${command}'` }, async (sandbox) => {
    said.printed = (await sandbox.commands.run(command)).stdout;
    return true;
  });
  return said.printed;
}

interface Speech {
  readonly id: string;
  readonly by: number;
  readonly edge: number;
  readonly what: string;
}

/** Works in a sandbox until the work says yes. */
async function speak(fleet: Fleet, to: Speech, work: (sandbox: Sandbox) => Promise<boolean>): Promise<void> {
  const said = { turn: 0, last: "no" };
  const attempt = async () => {
    try {
      const through = fleet.sdk(to.by + said.turn, to.edge + said.turn);
      return await work(await Sandbox.connect(to.id, { ...through, timeoutMs: 3_600_000, requestTimeoutMs: 20_000 }));
    } catch (error) {
      said.turn++;
      said.last = String(error);
      return false;
    }
  };
  await until(attempt, { what: `${to.what} of ${to.id}`, timeoutMs: LIMIT_MS, everyMs: 300 }).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}; last: ${said.last}`, { cause: error });
    },
  );
}
