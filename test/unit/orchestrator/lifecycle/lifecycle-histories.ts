/** Random histories of one sandbox: runs them, and checks what must hold at every step and at the end. */

import * as fc from "fast-check";
import { expect } from "vitest";
import { toPolicy } from "../../../../orchestrator/network-policy/policy.ts";
import { openPassword } from "../../../../orchestrator/network-policy/secret.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import type { EndReason } from "../../../../shared/states/end-reason.ts";
import { ID } from "./lifecycle-node.ts";
import { sealing } from "./lifecycle-process.ts";
import { type LifecycleWorld, lifecycleWorld, type Operation } from "./lifecycle-world.ts";

export const operation = fc.constantFrom<Operation>(
  "pause",
  "pause",
  "pause disk",
  "connect",
  "connect",
  "reboot",
  "snapshot",
  "rewind",
  "rewind",
  "deny",
  "deny",
  "allow",
  "expire",
  "expire paused",
  "kill",
  "exit",
  "crash",
  "unwritten",
  "refuse",
  "break",
  "silent before",
  "silent after",
);
export const peaceful = fc.constantFrom<Operation>(
  "pause",
  "connect",
  "reboot",
  "snapshot",
  "rewind",
  "pause disk",
  "expire",
  "deny",
  "allow",
);

const KILLS: readonly Operation[] = ["kill", "expire paused"];

/** What ends the sandbox, and the reason that its record has then. An exit that no one reported is found as `lost`. */
const END_OF: readonly (readonly [Operation, EndReason])[] = [
  ["kill", "request"],
  ["expire paused", "expired"],
  ["exit", "exited"],
  ["exit", "lost"],
];

/** An operation, and the process that performs it. */
export interface Asked {
  readonly operation: Operation;
  readonly at: number;
}

interface Ran {
  readonly w: LifecycleWorld;
  readonly killed: boolean;
}

/**
 * Runs the rounds one after the other, and all operations of a round concurrently.
 * @param beside a database on a server, which two processes use
 */
export async function run(
  scheduler: fc.Scheduler,
  rounds: readonly (readonly Asked[])[],
  beside?: string,
): Promise<Ran> {
  const step = () => scheduler.schedule(Promise.resolve());
  const w = await lifecycleWorld(step, beside);
  let killed = false;
  for (const operations of rounds) {
    const answers = operations.map(async ({ operation: each, at }) => {
      await step();
      return { each, result: await w.perform(each, at) };
    });
    for (const answer of await watched(Promise.allSettled(answers), scheduler, w)) {
      if (answer.status === "rejected") checkRefusal(answer.reason);
      else killed ||= KILLS.includes(answer.value.each) && answer.value.result === true;
    }
  }
  await watched(w.settle(), scheduler, w);
  return { w, killed };
}

/** A refusal has a reason, and is never an internal error. */
function checkRefusal(reason: unknown): void {
  expect(reason).toBeInstanceOf(AppError);
  expect((reason as AppError).code).not.toBe("internal");
}

/** Lets the scheduler run one step at a time until `work` is done, and checks the live executions between steps. */
async function watched<T>(work: Promise<T>, scheduler: fc.Scheduler, w: LifecycleWorld): Promise<T> {
  const progress = { done: false };
  const note = () => {
    progress.done = true;
  };
  work.then(note, note);
  while (!progress.done) {
    // A database on a server answers later than anything else here: what it is asked comes to an end between two steps.
    if (scheduler.count() > 0 && !w.asks()) await scheduler.waitOne();
    else await new Promise((resolve) => setImmediate(resolve));
    expect(w.live.size, "live executions").toBeLessThanOrEqual(1);
    expect(w.clashes, "works of two processes at the same time").toEqual([]);
  }
  return work;
}

export async function check({ w, killed }: Ran): Promise<void> {
  const record = await w.store.sandboxes.get(ID);
  if (record === undefined) throw new Error("the record is gone");
  const { state, snapshot, executionId } = record;
  expect(["running", "paused", "gone"]).toContain(state);
  if (killed) expect(state).toBe("gone");
  const running = state === "running" ? [executionId] : [];
  expect([...w.live.keys()]).toEqual(running);
  // The record and the node have the same policy, and no change of it is left unfinished.
  const proxyPassword = openPassword(sealing, record.sealedProxyPassword, ID);
  for (const policy of w.live.values()) expect(policy).toEqual(toPolicy({ ...record, proxyPassword }));
  if (state !== "gone") expect(await w.store.networks.changing(ID)).toBeUndefined();
  expect(w.routes().lookup(ID)?.executionId).toBe(running[0]);
  if (state === "paused") expect([...w.snapshots.keys()]).toContain(snapshot?.id);
  if (state !== "gone") expect(record.pendingSnapshot).toBeUndefined();
  expect(await w.store.storage.projectBytes(record.projectId)).toBe(0);
  await checkStored(w, state === "gone" ? undefined : snapshot?.id);
  const events = await w.store.events.list(record.projectId, { offset: 0, limit: 100, ascending: true });
  const ends = events.filter(({ type }) => type.endsWith("killed"));
  expect(ends.map(({ data }) => reasonOf(data))).toEqual(state === "gone" ? [record.end?.reason] : []);
  checkEnd(record);
}

/** One of the reasons of a sandbox that has ended, and none otherwise. */
function checkEnd({ state, end }: SandboxRecord): void {
  if (state !== "gone") expect(end).toBeUndefined();
  else expect(END_OF.map(([, reason]) => reason)).toContain(end?.reason);
  expect(end?.exitCode).toBe(end?.reason === "exited" ? 1 : undefined);
}

function reasonOf(data: string | null): unknown {
  return data === null ? undefined : (JSON.parse(data) as { reason: unknown }).reason;
}

async function checkCause({ w }: Ran, asked: readonly Operation[]): Promise<void> {
  const end = (await w.store.sandboxes.get(ID))?.end;
  const causes = END_OF.filter(([, reason]) => reason === end?.reason).map(([cause]) => cause);
  if (end !== undefined) expect(asked.some((each) => causes.includes(each))).toBe(true);
}

async function checkThere({ w }: Ran): Promise<void> {
  expect((await w.store.sandboxes.get(ID))?.state).not.toBe("gone");
}

/** Neither a fault of the node nor a death of a process ends a sandbox, and its reason is something that happened. */
export async function checkReasons(ran: Ran, asked: readonly Operation[]): Promise<void> {
  if (!asked.includes("exit") && !asked.some((each) => KILLS.includes(each))) await checkThere(ran);
  await checkCause(ran, asked);
}

/** Every stored snapshot is needed, or will be removed. */
async function checkStored(w: LifecycleWorld, needed: string | undefined): Promise<void> {
  const strays = await w.strays();
  for (const id of w.snapshots.keys()) expect(strays.includes(id) || id === needed, id).toBe(true);
}
