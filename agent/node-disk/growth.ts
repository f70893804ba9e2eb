/** Finds the sandbox that fills the disk, in three ways, the cheap and certain one first. */

/** A writer to the node's disk that can be frozen. */
export interface Grower {
  /** Id of its execution or build. */
  readonly id: string;
  /** Bytes that its processes have written since they began, without those of some that have ended. */
  written(): number;
  /** Microseconds of processor time since it began. */
  cpuUs(): number;
  /** Bytes of its disk as last measured. */
  usedBefore(): number | undefined;
  /** Bytes beyond its disk size, as last measured; 0 when its disk is within that size. */
  over(): number;
  /** Walks its disk; undefined when that takes too long. */
  used(): Promise<number | undefined>;
  files(): Promise<number | undefined>;
}

interface Sample {
  readonly written: number;
  readonly cpuUs: number;
}

/** Growth between two checks up to which a sandbox counts as writing normally. */
const LEAST_BYTES = 1024 ** 2;
const LEAST_FILES = 10_000;
/** Shortest time between two walks, because a walk loads the disk itself. */
const WALK_EVERY_MS = 5_000;

export interface Growth {
  /** Records how much each sandbox or build has written so far. */
  look(growers: readonly Grower[]): void;
  /**
   * The writer to hold now; undefined when none can be found. Active writers beyond their disk size come first, then the
   * one that has written most since the last check. Programs that have ended may be in no counter: then it walks the
   * disks, and if that shows nothing and the shortage is urgent, chooses the one that used most processor time.
   */
  choose(growers: readonly Grower[], short: Short): Promise<Grower | undefined>;
}

interface Short {
  readonly of: "bytes" | "inodes";
  readonly urgent: boolean;
}

export function createGrowth(now: () => number): Growth {
  const state = {
    seen: new Map<string, Sample>(),
    disks: new Map<string, number>(),
    walkedAt: Number.NEGATIVE_INFINITY,
  };

  const since = (grower: Grower, what: keyof Sample): number => {
    const before = state.seen.get(grower.id);
    return before === undefined ? 0 : grower[what]() - before[what];
  };

  const walk = async (growers: readonly Grower[], of: Short["of"]): Promise<Grower | undefined> => {
    if (now() - state.walkedAt < WALK_EVERY_MS) return undefined;
    const found: (readonly [Grower, number])[] = [];
    const disks = new Map<string, number>();
    for (const grower of growers) {
      if (of === "inodes") {
        found.push([grower, (await grower.files()) ?? Number.POSITIVE_INFINITY]);
        continue;
      }
      const before = state.disks.get(grower.id) ?? grower.usedBefore();
      const used = (await grower.used()) ?? before;
      if (used !== undefined) disks.set(grower.id, used);
      // A disk that was never measured can be compared at the next check.
      if (before !== undefined && used !== undefined) found.push([grower, used - before]);
    }
    state.disks = disks;
    // The time counts from the end of the walk, which takes a while with many disks.
    state.walkedAt = now();
    return most(found, of === "inodes" ? LEAST_FILES : LEAST_BYTES);
  };

  const look = (growers: readonly Grower[]) => {
    state.seen = new Map(
      growers.map((grower) => [grower.id, { written: grower.written(), cpuUs: grower.cpuUs() }] as const),
    );
  };

  return {
    look,
    async choose(growers, { of, urgent }) {
      const writing = growers.map((grower) => [grower, since(grower, "written")] as const);
      const working = growers.map((grower) => [grower, since(grower, "cpuUs")] as const);
      look(growers);
      const active = writing.filter(([, bytes]) => bytes >= LEAST_BYTES).map(([grower]) => grower);
      const greedy = most(
        active.map((grower) => [grower, grower.over()] as const),
        1,
      );
      const writer = of === "bytes" ? (greedy ?? most(writing, LEAST_BYTES)) : undefined;
      return writer ?? (await walk(growers, of)) ?? (urgent ? most(working, 1) : undefined);
    },
  };
}

/** The grower with the largest number, if the number is large enough. */
function most(of: readonly (readonly [Grower, number])[], least: number): Grower | undefined {
  const first = [...of].sort(([, a], [, b]) => b - a)[0];
  return first !== undefined && first[1] >= least ? first[0] : undefined;
}
