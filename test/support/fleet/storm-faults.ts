/**
 * The faults of a storm: kill -9 of a program, a program that stands still for some seconds, and a network that is cut for some
 * seconds between two programs, or between an orchestrator and PostgreSQL.
 */

import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../fuzz/random.ts";
import { type Direction, postgresSide, type Side, sideOf, whileCut } from "./cuts.ts";
import { type Fleet, type Member, memberPid, members, nameOf } from "./fleet.ts";

export interface Faults {
  readonly fleet: Fleet;
  /** What was done, how often. */
  readonly done: Map<string, number>;
  /** One cut at a time: their rules are the machine's. */
  cutting: boolean;
}

/** Most are kills; the others take seconds each. */
const KINDS = ["kill", "kill", "kill", "kill", "kill", "kill", "stall", "cut"] as const;
/** The longest time between the begin of an operation and the kill. */
const LATEST_KILL_MS = 800;
/** Shorter than leases, so that nobody is taken for dead. */
const SHORTEST_MS = 2_000;
const LONGER_MS = 3_000;
const DIRECTIONS: readonly Direction[] = ["both ways", "one way", "the other way", "slow"];

/** Injects one fault within the next moments. All choices are made before it returns. */
export function injectFault(faults: Faults, random: Random): Promise<void> {
  const kind = random.pick(KINDS);
  switch (kind) {
    case "kill":
      return kill(faults, random.pick(members(faults.fleet)), random.below(LATEST_KILL_MS));
    case "stall":
      return stall(faults, random.pick(members(faults.fleet)), SHORTEST_MS + random.below(LONGER_MS));
    case "cut":
      return cut(faults, random.pick(pairs(faults.fleet)), {
        direction: random.pick(DIRECTIONS),
        forMs: SHORTEST_MS + random.below(LONGER_MS),
      });
  }
}

function note({ done }: Faults, what: string): void {
  done.set(what, (done.get(what) ?? 0) + 1);
}

/** One that is away already is left alone. */
async function kill(faults: Faults, victim: Member, afterMs: number): Promise<void> {
  const pid = await memberPid(victim).catch(() => 0);
  await delay(afterMs);
  if (await signal(pid, victim, "SIGKILL")) note(faults, `${nameOf(victim)} killed`);
}

async function stall(faults: Faults, victim: Member, forMs: number): Promise<void> {
  const pid = await memberPid(victim).catch(() => 0);
  if (!(await signal(pid, victim, "SIGSTOP"))) return;
  note(faults, `${nameOf(victim)} stopped`);
  try {
    await delay(forMs);
  } finally {
    // Another client may have killed it meanwhile.
    await signal(pid, victim, "SIGCONT");
  }
}

interface Pair {
  readonly name: string;
  readonly sides: () => Promise<readonly [Side, Side]>;
}

async function cut(
  faults: Faults,
  { name, sides }: Pair,
  { direction, forMs }: { readonly direction: Direction; readonly forMs: number },
): Promise<void> {
  if (faults.cutting) return;
  faults.cutting = true;
  try {
    // One that is away has nothing to be cut off from.
    const both = await sides().catch(() => undefined);
    if (both === undefined) return;
    note(faults, `${name} cut`);
    await whileCut(both, direction, () => delay(forMs), { quiet: true });
  } finally {
    faults.cutting = false;
  }
}

/** Those that speak to each other. */
function pairs({ orchestrators, nodes, edges }: Fleet): readonly Pair[] {
  const between = (one: Member, other: Member): Pair => ({
    name: `${nameOf(one)} and ${nameOf(other)}`,
    sides: () => Promise.all([sideOf(one), sideOf(other)]),
  });
  return [
    ...orchestrators.map((one) => ({
      name: `${nameOf(one)} and PostgreSQL`,
      sides: () => Promise.all([sideOf(one), postgresSide()]),
    })),
    ...[...orchestrators, ...edges].flatMap((one) => nodes.map((node) => between(one, node))),
    ...edges.flatMap((edge) => orchestrators.map((one) => between(edge, one))),
    ...nodes.flatMap((node, index) => nodes.slice(index + 1).map((other) => between(node, other))),
  ];
}

/** False: the process is not the program that its file of process ids names, because it has ended in between. */
async function signal(pid: number, { program }: Member, name: NodeJS.Signals): Promise<boolean> {
  const command = pid > 0 ? await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "") : "";
  if (!command.includes(`${program}.js`)) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
