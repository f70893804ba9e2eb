/**
 * Which of the machine's processors each container may use. A limit of processor time alone leaves a sandbox with one CPU
 * on all processors of the machine, and programs that size themselves start as many threads. Decides and counts only.
 */

import { formatCpus, parseCpus } from "../host/cpu-list.ts";

export interface CpuSets {
  /** Chooses the processors that the fewest containers use, and counts them at once. Undefined: all of them. */
  take(count: number): readonly number[] | undefined;
  /** Frees the processors that `take` chose, when Docker made no container. */
  give(cpus: readonly number[] | undefined): void;
  /** The container that was made with these. */
  own(id: string, cpus: readonly number[] | undefined): void;
  /** A container that an earlier agent process made. */
  adopt(id: string, list: string, running: boolean): void;
  knows(id: string): boolean;
  /** It does not run, and keeps its set: others are chosen as if it were not there. */
  rest(id: string): void;
  wake(id: string): void;
  free(id: string): void;
  /**
   * Changes the number of processors of a container: of those it has, the least used stay.
   * @returns the list to set, as the kernel writes lists; every processor when it gets as many as there are
   */
  change(id: string, count: number): string;
}

interface Lease {
  readonly cpus: readonly number[];
  readonly counted: boolean;
}

export function createCpuSets(online: readonly number[]): CpuSets {
  const used = new Map(online.map((cpu) => [cpu, 0]));
  const leases = new Map<string, Lease>();

  const count = (cpus: readonly number[], by: number) => {
    for (const cpu of cpus) if (used.has(cpu)) used.set(cpu, (used.get(cpu) ?? 0) + by);
  };
  const least = (among: readonly number[], wanted: number) =>
    among.toSorted((a, b) => (used.get(a) ?? 0) - (used.get(b) ?? 0) || a - b).slice(0, wanted);
  const set = (id: string, lease: Lease | undefined) => {
    const before = leases.get(id);
    if (before?.counted === true) count(before.cpus, -1);
    if (lease?.counted === true) count(lease.cpus, 1);
    if (lease === undefined) leases.delete(id);
    else leases.set(id, lease);
  };
  const pause = (id: string, counted: boolean) => {
    const lease = leases.get(id);
    if (lease !== undefined) set(id, { ...lease, counted });
  };

  return {
    take(wanted) {
      if (wanted >= online.length) return undefined;
      const cpus = least(online, wanted).toSorted((a, b) => a - b);
      count(cpus, 1);
      return cpus;
    },
    give: (cpus = []) => count(cpus, -1),
    own(id, cpus = []) {
      // Counted by `take` already.
      count(cpus, -1);
      set(id, { cpus, counted: true });
    },
    adopt: (id, list, running) => set(id, { cpus: parseCpus(list), counted: running }),
    knows: (id) => leases.has(id),
    rest: (id) => pause(id, false),
    wake: (id) => pause(id, true),
    free: (id) => set(id, undefined),
    change(id, wanted) {
      const { cpus: before = [], counted = true } = leases.get(id) ?? {};
      // Its own use does not count against the processors it has.
      set(id, undefined);
      const kept = wanted >= online.length ? [...online] : least(before.length === 0 ? online : before, wanted);
      const more = least(
        online.filter((cpu) => !kept.includes(cpu)),
        Math.max(0, Math.min(wanted, online.length) - kept.length),
      );
      const cpus = [...kept, ...more].toSorted((a, b) => a - b);
      // As many as there are: not a choice, and no reason to avoid any of them.
      set(id, { cpus: cpus.length === online.length ? [] : cpus, counted });
      return formatCpus(cpus);
    },
  };
}
