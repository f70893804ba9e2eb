/**
 * Measures how much memory of the machine a sandbox takes, all of it (processes, shim, daemon, kernel), and how many fit on a node:
 * idle ones, paused ones that are kept frozen, and busy ones. By default from a number that is quick to make; with --full it makes
 * sandboxes until a tenth of the machine's memory is left.
 */

import { readFile } from "node:fs/promises";
import { Sandbox } from "e2b";
import { type Bench, untilPoolIsFull } from "./bench.ts";
import { NO_ROOM, outcomeOf } from "./first-command.ts";
import { type Row, row, summarise } from "./numbers.ts";

/** Memory of the node for which the number is given. */
const NODE_GB = 24;
/** Share of the memory that stays free. */
const LEFT = 0.1;
const MOST = 2_000;
const AT_ONCE = 5;
const MB = 1e6;

interface Kind {
  readonly name: string;
  /** From so many the memory of one is reckoned, unless the node has room for fewer. */
  readonly count: number;
  /** What is done in each sandbox after its first command. */
  readonly prepare: (sandbox: Sandbox) => Promise<unknown>;
}

const KINDS: readonly Kind[] = [
  {
    name: "idle",
    count: 200,
    prepare: () => Promise.resolve(),
  },
  { name: "frozen", count: 60, prepare: (sandbox) => sandbox.pause() },
  {
    name: "busy",
    count: 60,
    // 64 MB that the kernel cannot share, touched again every second.
    prepare: (sandbox) =>
      sandbox.commands.run(
        'python3 -c "import os, time\nheld = bytearray(os.urandom(64 * 1000 * 1000))\nwhile True:\n  held[::4096] = bytes(len(held[::4096]))\n  time.sleep(1)"',
        { background: true, timeoutMs: 0 },
      ),
  },
];

export async function density(bench: Bench): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const kind of KINDS) rows.push(...(await measure(kind, bench)));
  return rows;
}

async function measure(kind: Kind, { platform, quick, full, say }: Bench): Promise<readonly Row[]> {
  const wanted = full ? MOST : quick ? AT_ONCE : kind.count;
  const sandboxes: Sandbox[] = [];
  let withThem: Memory;
  let hasRoom = true;
  try {
    while (hasRoom) {
      const { available, total } = await memory();
      if (sandboxes.length >= wanted || (full && available < total * LEFT)) break;
      say(`${kind.name} sandboxes: ${sandboxes.length}`);
      const more = await made(kind, Math.min(AT_ONCE, wanted - sandboxes.length));
      sandboxes.push(...more.sandboxes);
      hasRoom = more.hasRoom;
    }
    if (sandboxes.length === 0) throw new Error("the node has no room for a sandbox");
    // The pool follows the demand: it is as large in both readings.
    await untilPoolIsFull(platform);
    withThem = await memory();
  } finally {
    await Promise.allSettled(sandboxes.map((sandbox) => Sandbox.kill(sandbox.sandboxId)));
  }
  await untilPoolIsFull(platform);
  const without = await memory();
  const each = (without.available - withThem.available) / sandboxes.length;
  const room = NODE_GB * 2 ** 30 * (1 - LEFT) - (without.total - without.available);
  const why = hasRoom ? `${LEFT * 100} % of this machine's memory was left` : "the node had no room for more";
  const until = full || !hasRoom ? `, until ${why}` : "";
  const how = `from ${sandboxes.length} sandboxes${until}`;
  return [
    row({
      name: `sandbox, ${kind.name}, all memory used ÷ ${sandboxes.length}`,
      unit: "MB",
      ours: summarise([each / MB]),
      budgets: [],
      note: how,
    }),
    row({
      name: `sandboxes on ${NODE_GB} GB, ${kind.name}`,
      unit: "sandboxes",
      ours: summarise([Math.floor(room / each)]),
      budgets: [],
      note: `${how}; the rest of this machine used ${Math.round((without.total - without.available) / MB)} MB`,
    }),
  ];
}

/** A node without room for more ends it; any other failure fails it. */
async function made({ prepare }: Kind, count: number) {
  const some = Array.from({ length: count }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 3_600_000 });
    await sandbox.commands.run("echo used once");
    await prepare(sandbox);
    return sandbox;
  });
  const { made: sandboxes, errors } = outcomeOf(await Promise.allSettled(some));
  const failure = errors.find((error) => !NO_ROOM.test(error));
  if (failure === undefined) return { sandboxes, hasRoom: errors.length === 0 };
  await Promise.allSettled(sandboxes.map((sandbox) => Sandbox.kill(sandbox.sandboxId)));
  throw new Error(failure);
}

interface Memory {
  readonly total: number;
  /** Bytes that new programs could have, page cache that can be dropped included. */
  readonly available: number;
}

async function memory(): Promise<Memory> {
  const text = await readFile("/proc/meminfo", "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) * 1024;
  return { total: bytes("MemTotal"), available: bytes("MemAvailable") };
}
