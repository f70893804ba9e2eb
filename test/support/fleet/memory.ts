/** Memory and open descriptors of the programs of a fleet, each by its own process: before, and when their garbage has had time. */

import { setTimeout as delay } from "node:timers/promises";
import { type Use, useOf } from "../../attack/flood/memory.ts";
import { egressPid } from "../platform/programs.ts";
import { type Fleet, memberPid, members, nameOf } from "./fleet.ts";

type Kind = "orchestrator" | "agent" | "edge" | "egress process";

interface ProgramUse extends Use {
  readonly kind: Kind;
  readonly pid: number;
}

/** By what the program is called. */
export type ProgramUses = ReadonlyMap<string, ProgramUse>;

/**
 * What a program may have more than before, in MB. A heap that has had more to do stays larger, and V8 keeps a part of the pages of
 * its garbage: an agent that had just been started went from 161 to 260 MB within minutes, and stayed there. What stays of each
 * request is more than this, when there were some hundreds of half a megabyte.
 */
const MORE_MB: Readonly<Record<Kind, number>> = { orchestrator: 128, agent: 160, edge: 64, "egress process": 64 };
/** Connections that programs keep to each other come and go; a leak of one for each operation is more. */
const MORE_DESCRIPTORS = 40;
const LOOKS = 5;
const BETWEEN_LOOKS_MS = 2_000;

/** The lowest of some looks: what a look has more is garbage. */
export async function restingUses(fleet: Fleet): Promise<ProgramUses> {
  const lowest = new Map(await programUses(fleet));
  for (let looks = 1; looks < LOOKS; looks++) {
    await delay(BETWEEN_LOOKS_MS);
    for (const [name, { memoryMb, descriptors, ...program }] of await programUses(fleet)) {
      const before = lowest.get(name);
      lowest.set(name, {
        ...program,
        memoryMb: Math.min(memoryMb, before?.memoryMb ?? memoryMb),
        descriptors: Math.min(descriptors, before?.descriptors ?? descriptors),
      });
    }
  }
  return lowest;
}

/** Throws while a program is away. */
export async function programUses(fleet: Fleet): Promise<ProgramUses> {
  const programs: { name: string; kind: Kind; pid: number }[] = [];
  for (const member of members(fleet)) {
    programs.push({ name: nameOf(member), kind: member.program, pid: await memberPid(member) });
  }
  for (const { platform } of fleet.nodes) {
    const kind = "egress process";
    programs.push({ name: `${kind} of ${platform.instance}`, kind, pid: await egressPid(platform) });
  }
  const uses = programs.map(
    async (one) => [one.name, { kind: one.kind, pid: one.pid, ...(await useOf(one)) }] as const,
  );
  return new Map(await Promise.all(uses));
}

/** One sentence for each program that has more than it may have. One that was started again is held to what it had before. */
export function tooMuch(before: ProgramUses, now: ProgramUses): readonly string[] {
  return [...now].flatMap(([name, { kind, memoryMb, descriptors }]) => {
    const was = before.get(name);
    if (was === undefined) return [`the ${name} was not there before`];
    const mostMb = was.memoryMb + MORE_MB[kind];
    const most = was.descriptors + MORE_DESCRIPTORS;
    return [
      ...(memoryMb > mostMb ? [`memory of the ${name}: ${mostMb} MB at most, ${memoryMb} MB now`] : []),
      ...(descriptors > most ? [`descriptors of the ${name}: ${most} at most, ${descriptors} now`] : []),
    ];
  });
}

/** The figures for people, a line for each program. */
export function table(before: ProgramUses, now: ProgramUses): string {
  const lines = [...now].map(([name, { kind, pid, memoryMb, descriptors }]) => {
    const was = before.get(name);
    const again = was?.pid === pid ? "" : "; another process";
    const memory = `${was?.memoryMb ?? "?"} MB before, ${memoryMb} MB now (${MORE_MB[kind]} MB more at most)`;
    return `${name}: ${memory}; descriptors ${was?.descriptors ?? "?"}, ${descriptors}${again}`;
  });
  return lines.join("\n");
}
