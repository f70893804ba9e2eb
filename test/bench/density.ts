/**
 * Measures how much memory of the machine a sandbox takes, all of it (processes, shim, daemon, kernel), and how many fit on a node:
 * idle ones, paused ones that are kept frozen, and busy ones. By default from a number that is quick to make; with --full it makes
 * sandboxes until a tenth of the machine's memory is left.
 */

import { readFile } from "node:fs/promises";
import { Sandbox } from "e2b";
import { type Bench, untilPoolIsFull } from "./bench.ts";
import { type Budget, type Row, row, summarise } from "./numbers.ts";

/** Memory of the node for which the number is given. */
const NODE_GB = 24;
/** Share of the memory that stays free. */
const LEFT = 0.1;
const COUNT = 60;
const MOST = 2_000;
const AT_ONCE = 5;
const MB = 1e6;

interface Kind {
  readonly name: string;
  /** What is done in each sandbox after its first command. */
  readonly prepare: (sandbox: Sandbox) => Promise<unknown>;
  readonly budgets: (megabytes: number) => Budget[];
}

const KINDS: readonly Kind[] = [
  {
    name: "idle",
    prepare: () => Promise.resolve(),
    budgets: (megabytes) => [{ says: "≤ 22 MB", value: megabytes, limit: 22, better: "less" }],
  },
  { name: "frozen", prepare: (sandbox) => sandbox.pause(), budgets: () => [] },
  {
    name: "busy",
    // 64 MB that the kernel cannot share, touched again every second.
    prepare: (sandbox) =>
      sandbox.commands.run(
        'python3 -c "import os, time\nheld = bytearray(os.urandom(64 * 1000 * 1000))\nwhile True:\n  held[::4096] = bytes(len(held[::4096]))\n  time.sleep(1)"',
        { background: true, timeoutMs: 0 },
      ),
    budgets: () => [],
  },
];

export async function density(bench: Bench): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const kind of KINDS) rows.push(...(await measure(kind, bench)));
  return rows;
}

async function measure(kind: Kind, { platform, quick, full, say }: Bench): Promise<readonly Row[]> {
  const wanted = full ? MOST : quick ? AT_ONCE : COUNT;
  const sandboxes: Sandbox[] = [];
  let withThem: Memory;
  try {
    for (;;) {
      const { available, total } = await memory();
      if (sandboxes.length >= wanted || (full && available < total * LEFT)) break;
      say(`${kind.name} sandboxes: ${sandboxes.length}`);
      sandboxes.push(...(await made(kind, Math.min(AT_ONCE, wanted - sandboxes.length))));
    }
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
  const how = full
    ? `${sandboxes.length} were made, until ${LEFT * 100} % of this machine's memory was left`
    : `from ${sandboxes.length} sandboxes`;
  return [
    row({
      name: `sandbox, ${kind.name}, all memory used ÷ count`,
      unit: "MB",
      ours: summarise([each / MB]),
      budgets: kind.budgets(each / MB),
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

async function made({ prepare }: Kind, count: number): Promise<Sandbox[]> {
  const some = Array.from({ length: count }, async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 3_600_000 });
    await sandbox.commands.run("echo used once");
    await prepare(sandbox);
    return sandbox;
  });
  const outcomes = await Promise.allSettled(some);
  const good = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = outcomes.find((one) => one.status === "rejected");
  if (failed === undefined) return good;
  await Promise.allSettled(good.map((sandbox) => Sandbox.kill(sandbox.sandboxId)));
  throw failed.reason;
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
