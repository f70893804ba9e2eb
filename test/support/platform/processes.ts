/** The processes of this machine as the kernel lists them at one moment. */

import { readFile } from "node:fs/promises";
import { pids } from "./host-objects.ts";

export interface MachineProcess {
  readonly pid: number;
  readonly parent: number;
  /** Its arguments, divided by spaces. */
  readonly command: string;
  /** Ids of containers in the names of its control groups. */
  readonly containers: readonly string[];
}

/** Processes that have ended and only wait for their parent to ask are left out. */
export async function listProcesses(): Promise<readonly MachineProcess[]> {
  const found = await Promise.all((await pids()).map((pid) => describeProcess(Number(pid))));
  return found.filter((one) => one !== undefined);
}

/** Undefined: it has ended. */
async function describeProcess(pid: number): Promise<MachineProcess | undefined> {
  try {
    const [stat, command, groups] = await Promise.all(
      ["stat", "cmdline", "cgroup"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
    );
    // The name of the program, in brackets, may hold anything.
    const [state = "", parent = ""] = (stat ?? "").slice((stat ?? "").lastIndexOf(")") + 2).split(" ");
    if (/[ZX]/.test(state)) return undefined;
    const containers = (groups ?? "").match(/[0-9a-f]{64}/g) ?? [];
    return { pid, parent: Number(parent), command: (command ?? "").replaceAll("\0", " ").trim(), containers };
  } catch {
    return undefined;
  }
}

/** The processes of which `isRoot` holds, with all that descend from them. */
export function familiesOf(
  processes: readonly MachineProcess[],
  isRoot: (one: MachineProcess) => boolean,
): readonly MachineProcess[] {
  const found = new Set(processes.filter(isRoot));
  // A set shows to a loop what is added meanwhile.
  for (const { pid } of found) {
    for (const one of processes) if (one.parent === pid) found.add(one);
  }
  return [...found];
}

/** The process itself and those that it descends from. */
export function lineOf(processes: readonly MachineProcess[], pid: number): ReadonlySet<number> {
  const parents = new Map(processes.map((one) => [one.pid, one.parent]));
  const line = new Set<number>();
  for (let next: number | undefined = pid; next !== undefined && !line.has(next); next = parents.get(next))
    line.add(next);
  return line;
}
