/**
 * One hostile sandbox through the agent: the agent makes it, then pauses, forks or stores it, or builds it into a template,
 * by its seed.
 */

import { randomUUID } from "node:crypto";
import type { BuildBody } from "../../../shared/agent-api/build-shapes.ts";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { containers, RESOURCES } from "../agent/real-agent.ts";
import { until } from "../runner/until.ts";
import { background, command } from "../sandbox/envd-commands.ts";
import { hostileScript, hostileSteps, READY } from "./hostile-words.ts";
import { hostileBuild, type RoundsHost } from "./rounds-host.ts";

const LIMIT_MS = 120_000;
const ROOT = { user: "root" };

export const OPERATIONS = [
  "pause and resume",
  "fork, two copies",
  "snapshot, copy, its fork",
  "snapshot without memory",
  "template with memory",
  "template with COPY",
] as const;
type Operation = (typeof OPERATIONS)[number];

export const ENDINGS = ["restored", "dump refused", "restore refused", "build refused"] as const;
type Ending = (typeof ENDINGS)[number];

export interface Round {
  readonly seed: number;
  readonly operation: Operation;
  /** The things that the sandbox holds open, and what it did to the directories. */
  readonly did: string;
  readonly ended: Ending;
  readonly reason: string;
  /** The events in the canaries during the round. */
  readonly touched: readonly string[];
}

class Refused extends Error {
  readonly ended: Ending;
  constructor(ended: Ending, reason: string) {
    super(reason);
    this.ended = ended;
  }
}

interface Work {
  readonly rounds: RoundsHost;
  readonly seed: number;
  readonly script: string;
  /** What the round undoes at its end, the last action first. */
  readonly undo: (() => Promise<unknown>)[];
  did: string;
}

export async function hostileRound(rounds: RoundsHost, seed: number): Promise<Round> {
  const operation = OPERATIONS[seed % OPERATIONS.length] ?? "pause and resume";
  const script = hostileScript(seed, rounds.hostProcess, rounds.host.canaries);
  const work: Work = { rounds, seed, script, undo: [], did: "" };
  const before = rounds.host.count();
  const ending = { ended: "restored" as Ending, reason: "" };
  try {
    await DO[operation](work);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    ending.ended = error.ended;
    ending.reason = error.message.split("\n")[0] ?? "";
  } finally {
    for (const one of work.undo.toReversed()) await one();
  }
  // The events after the sandbox's end count too, because a removal also walks the files.
  return { seed, operation, did: work.did, ...ending, touched: await rounds.host.since(before) };
}

const DO: Readonly<Record<Operation, (work: Work) => Promise<void>>> = {
  async "pause and resume"(work) {
    const { agent } = work.rounds;
    const source = await hostileSandbox(work);
    const snapshotId = randomUUID();
    await dumped(agent.call.pauseExecution({ params: params(source), body: { snapshotId, memory: true } }));
    work.undo.push(() => agent.call.deleteSnapshot({ params: { snapshotId } }));
    const { sandboxId } = source;
    const stopped = async () =>
      (await containers()).some(({ name, state }) => name === `svc-${sandboxId}` && state !== "running");
    await until(stopped, { what: `the end of the frozen container of seed ${work.seed}`, timeoutMs: LIMIT_MS });
    await restored(work, { sandboxId, origin: { is: "paused", snapshotId, memory: true } });
  },
  async "fork, two copies"(work) {
    const snapshotId = await stored(work, await hostileSandbox(work));
    const copy = () => restored(work, { origin: { is: "snapshot", snapshotId, memory: true } });
    // The round waits for both copies, even when one of them fails.
    const copies = await Promise.allSettled([copy(), copy()]);
    for (const one of copies) if (one.status === "rejected") throw one.reason;
  },
  async "snapshot, copy, its fork"(work) {
    const source = await hostileSandbox(work);
    const first = await stored(work, source);
    await work.rounds.agent.stop(source.executionId);
    const copy = await restored(work, { origin: { is: "snapshot", snapshotId: first, memory: true } });
    const second = await stored(work, copy);
    await restored(work, { origin: { is: "snapshot", snapshotId: second, memory: true } });
  },
  async "snapshot without memory"(work) {
    const snapshotId = await stored(work, await hostileSandbox(work), false);
    const copy = await started(work, { origin: { is: "snapshot", snapshotId, memory: false } });
    // The copy's directories lead elsewhere from its start.
    const next = await stored(work, copy);
    await started(work, { origin: { is: "snapshot", snapshotId: next, memory: true } });
  },
  async "template with memory"(work) {
    const copy = await restored(work, await built(work, []));
    await restored(work, { origin: { is: "snapshot", snapshotId: await stored(work, copy), memory: true } });
  },
  async "template with COPY"(work) {
    const { agent, host, hostProcess } = work.rounds;
    const give = (archive: Buffer) => {
      const hash = randomUUID().replaceAll("-", "").padEnd(64, "0");
      agent.files.set(hash, archive);
      work.undo.push(() => Promise.resolve(agent.files.delete(hash)));
      return hash;
    };
    const steps = await hostileSteps(work.seed, hostProcess, host.canaries, give);
    await restored(work, await built(work, steps));
  },
};

type More = Parameters<RoundsHost["agent"]["start"]>[0];
const params = ({ executionId }: Started) => ({ executionId });
const said = (error: unknown) => (error instanceof Error ? error.message : String(error));

async function started(work: Work, more: More): Promise<Started> {
  const { agent, image } = work.rounds;
  const one = await agent.start({ build: hostileBuild(image), ...more }).catch((error: unknown) => {
    throw more?.origin === undefined ? error : new Refused("restore refused", said(error));
  });
  work.undo.push(() => agent.stop(one.executionId));
  return one;
}

async function hostileSandbox(work: Work): Promise<Started> {
  const source = await started(work, {});
  const { address } = source;
  await background(address, work.script, ROOT);
  const ready = async () => (await command(address, READY, ROOT)).code === 0;
  await until(ready, { what: `the work of seed ${work.seed}`, timeoutMs: LIMIT_MS });
  work.did = (await command(address, "cat /done", ROOT)).output;
  return source;
}

async function dumped<T>(dump: Promise<T>): Promise<T> {
  return dump.catch((error: unknown) => {
    throw new Refused("dump refused", said(error));
  });
}

async function stored(work: Work, of: Started, memory = true): Promise<string> {
  const { agent } = work.rounds;
  const snapshotId = randomUUID();
  await dumped(agent.call.checkpointExecution({ params: params(of), body: { snapshotId, memory } }));
  work.undo.push(() => agent.call.deleteSnapshot({ params: { snapshotId } }));
  return snapshotId;
}

/** Starts a sandbox from memory, and waits until the hostile program runs on in it. */
async function restored(work: Work, more: More): Promise<Started> {
  const copy = await started(work, more);
  if (copy.restored !== "memory") throw new Refused("restore refused", `from ${copy.restored}`);
  const beat = async () => (await command(copy.address, "cat /alive", ROOT)).output;
  const before = await beat();
  const beats = async () => (await beat()) !== before;
  await until(beats, { what: `life in the restored sandbox of seed ${work.seed}`, timeoutMs: LIMIT_MS });
  return copy;
}

async function built(work: Work, steps: BuildBody["steps"]): Promise<More> {
  const { agent, image } = work.rounds;
  const buildId = randomUUID();
  const from = { is: "image" as const, image };
  const all = { templateId: "hostile", resources: RESOURCES, from, steps, force: false, limitMs: LIMIT_MS };
  const startCmd = `sudo bash -c '${work.script.replaceAll("'", `'\\''`)}'`;
  await agent.call.startBuild({ params: { buildId }, body: { ...all, startCmd, readyCmd: READY } });
  work.undo.push(() => agent.call.deleteBuild({ params: { buildId } }));
  const look = () => agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 1_000 } });
  const over = async () => (await look()).status !== "building";
  await until(over, { what: `the build of seed ${work.seed}`, timeoutMs: 2 * LIMIT_MS });
  const { result, reason, entries } = await look();
  if (result === undefined) throw new Refused("build refused", reason?.message ?? "");
  const { settings, snapshot } = result;
  if (snapshot?.memory !== true) {
    const warned = entries.filter(({ level }) => level === "warn").map(({ message }) => message);
    throw new Refused("dump refused", warned.at(-1) ?? "the template has no memory");
  }
  return {
    build: { templateId: "hostile", buildId, image: result.image },
    envs: settings.envs,
    defaultUser: settings.user,
    defaultWorkdir: settings.workdir,
    origin: { is: "snapshot", snapshotId: snapshot.snapshotId, memory: true },
  };
}
