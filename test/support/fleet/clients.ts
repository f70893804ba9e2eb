/**
 * Clients that make a sandbox, run a command in it and kill it, again and again, while programs of a fleet are replaced. What fails
 * is asked again at the next orchestrator and edge, and kept; what was acknowledged must stay done.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { nameOf } from "./fleet.ts";
import { ask, type Kind, madeBy, stateOf } from "./insist.ts";
import { mark, note, type Roll } from "./roll.ts";

/** More than a fleet's program needs to come back on a busy machine. */
const LIMIT_MS = 120_000;
const EVERY_MS = 300;
const HOUR_MS = 3_600_000;

/** Names the program that is asked next: a failure is its own. */
type Asks = (program: string) => void;
/** Throws what the client was told. */
type Attempt<Result> = (turn: number, asks: Asks) => Promise<Result>;

/** Works until the roll is over, and leaves no sandbox. Throws when something was not done in time. */
export async function runClient(roll: Roll, first: number): Promise<void> {
  for (let turn = first; !roll.over.aborted; turn++) {
    const id = await make(roll, turn);
    await speak(roll, turn, id);
    await end(roll, turn + 1, id);
    await seeItGone(roll, turn, id);
    roll.done++;
  }
}

function make(roll: Roll, first: number): Promise<string> {
  return persist(roll, first, "create", async (turn, asks) => {
    const reply = await asked(roll, turn, asks, { kind: "create", id: "" }).catch((error: unknown) => {
      roll.unsure++;
      throw error;
    });
    if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`);
    return madeBy(reply)[0] ?? "";
  });
}

async function speak(roll: Roll, first: number, id: string): Promise<void> {
  const { fleet } = roll;
  await persist(roll, first, `command in ${id}`, async (turn, asks) => {
    const word = randomUUID();
    asks(orchestratorOf(roll, turn));
    const options = { timeoutMs: HOUR_MS, requestTimeoutMs: 30_000 };
    const sandbox = await Sandbox.connect(id, { ...fleet.sdk(turn, turn + first), ...options });
    asks(edgeOf(roll, turn + first));
    const { stdout } = await sandbox.commands.run(`echo ${word}`, { requestTimeoutMs: 30_000 });
    if (stdout !== `${word}\n`) throw new Error(`the command printed ${stdout}`);
  });
}

async function end(roll: Roll, first: number, id: string): Promise<void> {
  const seen = { unanswered: false };
  await persist(roll, first, `kill of ${id}`, async (turn, asks) => {
    const reply = await asked(roll, turn, asks, { kind: "kill", id }).catch((error: unknown) => {
      seen.unanswered = true;
      throw error;
    });
    // One that nobody has answered may have been done.
    if (reply.status !== 204 && !(reply.status === 404 && seen.unanswered))
      throw new Error(`${reply.status} ${reply.text}`);
  });
}

async function seeItGone(roll: Roll, first: number, id: string): Promise<void> {
  await persist(roll, first, `state of ${id}`, async (turn, asks) => {
    asks(orchestratorOf(roll, turn));
    const state = await stateOf(roll.fleet, turn, id).catch((error: unknown) => {
      throw error instanceof TypeError ? new Error("no answer", { cause: error }) : error;
    });
    if (state !== "gone") throw new Error(`it is ${state} after its kill was acknowledged`);
  });
}

async function asked(roll: Roll, turn: number, asks: Asks, work: { readonly kind: Kind; readonly id: string }) {
  asks(orchestratorOf(roll, turn));
  const reply = await ask(roll.fleet, turn, work);
  if (reply === undefined) throw new Error("no answer");
  return reply;
}

/** Attempts until one succeeds, and keeps what the client was told by the others. */
async function persist<Result>(roll: Roll, first: number, what: string, attempt: Attempt<Result>): Promise<Result> {
  const until = Date.now() + LIMIT_MS;
  for (let turn = first; ; turn++) {
    const since = mark(roll);
    const last = { asked: "" };
    try {
      return await attempt(turn, (program) => {
        last.asked = program;
      });
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      note(roll, since, { asked: last.asked, what: `${what.split(" ", 1)[0]}: ${said}` });
      if (Date.now() > until) throw new Error(`the ${what} was not done within ${LIMIT_MS / 1000} s`, { cause: error });
      await delay(EVERY_MS);
    }
  }
}

function orchestratorOf({ fleet: { orchestrators } }: Roll, turn: number): string {
  return orchestrators.map(nameOf)[turn % orchestrators.length] ?? "";
}

function edgeOf({ fleet: { edges } }: Roll, turn: number): string {
  return edges.map(nameOf)[turn % edges.length] ?? "";
}
