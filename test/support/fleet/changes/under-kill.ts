/**
 * An orchestrator is killed in the middle of changes of every kind: all of them are asked of it at once, and it dies when a share
 * of them is answered. What it has left is asked again at the other one; then both say of each what was acknowledged.
 */

import { expect } from "vitest";
import { type ApiCall, api, asAdmin, type Platform, type Reply } from "../../platform/platform.ts";
import { inTurn } from "../../sandbox/lasting.ts";
import { type Fleet, memberPid } from "../fleet.ts";
import { untilDone } from "../insist.ts";
import { untilBack } from "../ready.ts";
import type { Asked, Change, Done } from "./change.ts";
import { EVERY_CHANGE } from "./every-change.ts";
import { type Ground, onGround, own } from "./ground.ts";

export interface Kill {
  /** The orchestrator that dies. */
  readonly index: number;
  /** It dies when this share of the changes is answered. */
  readonly answered: number;
}

/** A change and what its request needs. */
interface Ready {
  readonly change: Change;
  readonly name: string;
  readonly asked: Asked;
}

/** It dies by then, however few are answered. */
const LATEST_KILL_MS = 10_000;
/** A build that an orchestrator died with is followed by another one when its lease has ended. */
const LIMIT_MS = 120_000;

export function changesUnderKill(fleet: Fleet, { index, answered }: Kill): Promise<void> {
  const victim = fleet.orchestrators[index];
  if (victim === undefined) throw new Error(`there is no orchestrator ${index}`);
  const by = 1 - index;
  return onGround(fleet, by, async (ground) => {
    // What comes first is answered first: another victim has another order.
    const order = index === 0 ? EVERY_CHANGE : EVERY_CHANGE.toReversed();
    const ready = await inTurn(order, (change) => prepared(change, ground));
    const pid = await memberPid(victim);
    const first = await askAndKill(ready, ground, { pid, index, answered });
    console.log(ready.map(({ name }, at) => `${name}: ${first[at]?.status ?? "no answer"}`).join("\n"));
    // The kill was in the middle.
    expect(first.filter((reply) => reply === undefined).length).toBeGreaterThan(0);
    expect(first.filter((reply) => reply !== undefined).length).toBeGreaterThan(0);
    const done = await Promise.all(ready.map((one, at) => untilItIsDone(one, ground, { index, answer: first[at] })));
    await untilBack(victim, pid);
    await inTurn(ready, (one) => expectDone(one, ground, done[ready.indexOf(one)] as Done));
  });
}

async function prepared(change: Change, ground: Ground): Promise<Ready> {
  const name = change.what === undefined ? change.route : `${change.route} of ${change.what}`;
  try {
    return { change, name, asked: await change.prepare(ground) };
  } catch (cause) {
    throw new Error(`what '${name}' needs could not be made`, { cause });
  }
}

/** Resolves to the answers; undefined: none. */
async function askAndKill(
  ready: readonly Ready[],
  ground: Ground,
  { pid, index, answered }: Kill & { readonly pid: number },
): Promise<readonly (Reply | undefined)[]> {
  const state = { answers: 0, killed: false };
  const kill = () => {
    if (!state.killed) process.kill(pid, "SIGKILL");
    state.killed = true;
  };
  const latest = setTimeout(kill, LATEST_KILL_MS);
  const replies = ready.map(async (one) => {
    const reply = await send(one, ground, { by: index, attempt: 0 });
    state.answers++;
    if (state.answers >= ready.length * answered) kill();
    return reply;
  });
  const all = await Promise.all(replies);
  clearTimeout(latest);
  return all;
}

function send(
  { change: { route, as }, asked: { path, call = {}, repeated } }: Ready,
  ground: Ground,
  { by, attempt }: { readonly by: number; readonly attempt: number },
): Promise<Reply | undefined> {
  const [method = ""] = route.split(" ");
  const through = ground.fleet.through(by);
  const given = attempt === 0 || repeated === undefined ? call : repeated(attempt);
  return api(
    as === "own project" ? own(ground, through) : through,
    method,
    path,
    credentials(as, through, given),
  ).catch(() => undefined);
}

function credentials(as: Change["as"], through: Platform, call: ApiCall): ApiCall {
  return as === "operator" ? { ...call, ...asAdmin(through) } : call;
}

function untilItIsDone(
  one: Ready,
  ground: Ground,
  { index, answer }: { readonly index: number; readonly answer: Reply | undefined },
): Promise<Done> {
  const { wasDone } = one.asked;
  return untilDone(
    {
      what: one.name,
      ask: (by, attempt) => send(one, ground, { by, attempt }),
      isDone: async (said, { unheard, next }) => {
        if (said.status < 300) return true;
        if (unheard === 0 || wasDone === undefined) return false;
        const look = async () => wasDone(said, ground.fleet.through(next));
        return look().catch(() => false);
      },
    },
    index,
    Promise.resolve(answer),
  );
}

async function expectDone({ name, asked: { state, becomes } }: Ready, { fleet }: Ground, done: Done): Promise<void> {
  for (const [by] of fleet.orchestrators.entries()) {
    await expect
      .poll(() => state(fleet.through(by), done), { timeout: LIMIT_MS, interval: 300, message: `after ${name}` })
      .toEqual(becomes);
  }
}
