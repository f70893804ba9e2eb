/** Reads memory and open files of programs: before a flood, at its worst moment, and now. */

import { readdir, readFile, writeFile } from "node:fs/promises";

export interface Watched {
  readonly name: string;
  readonly pid: number;
}

export interface Use {
  /** Resident memory in MB. */
  readonly memoryMb: number;
  readonly descriptors: number;
}

const EVERY_MS = 100;

/** Reads what a program uses now. @throws {Error} when the program has ended */
export async function useOf({ name, pid }: Watched): Promise<Use> {
  try {
    return { memoryMb: await statusMb(pid, "VmRSS"), descriptors: (await readdir(`/proc/${pid}/fd`)).length };
  } catch (cause) {
    throw new Error(`${name} (process ${pid}) has ended`, { cause });
  }
}

/** The program's soft limit of open files. */
export async function descriptorLimitOf({ pid }: Watched): Promise<number> {
  const soft = /^Max open files\s+(\d+)/m.exec(await readFile(`/proc/${pid}/limits`, "utf8"))?.[1];
  return Number(soft ?? Number.NaN);
}

interface Worst {
  /** Reads the highest values so far: memory from the kernel's own record, descriptors from ten looks a second. */
  read(): Promise<Use>;
  stop(): void;
}

/** Begins to watch a program. This needs root, because it resets the kernel's record of the highest memory. */
export async function watchWorst(watched: Watched): Promise<Worst> {
  // Writing 5 resets the record of the highest resident size to the present size.
  await writeFile(`/proc/${watched.pid}/clear_refs`, "5");
  let descriptors = 0;
  const look = () =>
    readdir(`/proc/${watched.pid}/fd`).then(
      (open) => void (descriptors = Math.max(descriptors, open.length)),
      () => undefined,
    );
  const looking = setInterval(() => void look(), EVERY_MS);
  return {
    async read() {
      await look();
      return { memoryMb: await statusMb(watched.pid, "VmHWM"), descriptors };
    },
    stop: () => clearInterval(looking),
  };
}

async function statusMb(pid: number, field: "VmRSS" | "VmHWM"): Promise<number> {
  const kb = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kb === undefined) throw new Error(`process ${pid} has no ${field}`);
  return Math.round(Number(kb) / 1024);
}
