/**
 * Measures snapshots, forks and creates from a snapshot by the size of the disk, beside `docker commit` of a container with
 * the same files: 20 MB in one file, and 1 GB with 40 000 small files.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { Sandbox } from "e2b";
import { run } from "../support/platform/programs.ts";
import { dockerRun } from "./baselines/docker.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, type Summary, summarise } from "./numbers.ts";
import { fork } from "./pausing.ts";

interface Content {
  readonly name: string;
  /** A shell program that writes the files. */
  readonly fill: string;
  /** Most milliseconds that the sandbox may stand still. */
  readonly frozenMs: number;
}

const SMALL_FILES =
  "for d in $(seq 0 39); do mkdir -p /opt/many/$d; for f in $(seq 0 999); do echo $d$f > /opt/many/$d/$f; done; done";
const CONTENTS: readonly Content[] = [
  { name: "20 MB", fill: "dd if=/dev/urandom of=/opt/file bs=1M count=20 2>/dev/null", frozenMs: 60 },
  {
    name: "1 GB + 40 000 files",
    fill: `dd if=/dev/urandom of=/opt/file bs=1M count=1024 2>/dev/null; ${SMALL_FILES}`,
    frozenMs: 1_000,
  },
];
const COMMIT_SHARE = 0.15;
const MANY = 10;
/** Writes the longest time between two of its own turns, which is how long it stood still. */
const GAPS = `exec python3 -c '
import os, time
longest, last = 0, time.monotonic()
while True:
    time.sleep(0.002)
    now = time.monotonic()
    if os.path.exists("/tmp/reset"):
        os.remove("/tmp/reset")
        longest = 0
    elif now - last > longest:
        longest = now - last
        open("/tmp/gap.new", "w").write(str(longest * 1000))
        os.rename("/tmp/gap.new", "/tmp/gap")
    last = time.monotonic()
'`;

/** Shell programs that write to the directory in $1, and what they show. */
const WRITES: Readonly<Record<string, string>> = {
  "300 writes of 4 KiB, each synced":
    "dd if=/dev/zero of=$1/synced bs=4k count=300 oflag=dsync 2>/dev/null; rm $1/synced",
  "5000 files made and removed": "mkdir $1/made; cd $1/made; seq 5000 | xargs touch; cd /; rm -r $1/made",
};
const WRITE_ROUNDS = 5;

export async function diskCopies(bench: Bench): Promise<readonly Row[]> {
  const rows: Row[] = [...(await writing(bench))];
  for (const content of CONTENTS) rows.push(...(await measure(bench, content)));
  return rows;
}

async function measure({ quick, say }: Bench, content: Content): Promise<readonly Row[]> {
  const rounds = quick ? 1 : 5;
  const samples = { snapshot: [], still: [], commit: [], create: [], one: [], many: [] } as Record<string, number[]>;
  const source = await Sandbox.create({ timeoutMs: 3_600_000 });
  const plain = await dockerRun();
  const add = (what: string, sample: number) => samples[what]?.push(sample);
  try {
    say(`writing ${content.name}`);
    await source.commands.run(content.fill, { user: "root", timeoutMs: 600_000 });
    await plain.exec("bash", "-c", content.fill);
    await source.commands.run(GAPS, { background: true, timeoutMs: 0, user: "root" });
    for (let round = 0; round < rounds; round++) {
      say(`copies of a disk with ${content.name}: ${round + 1} of ${rounds}`);
      add("commit", await commit(plain.name));
      await source.commands.run("touch /tmp/reset; while [ -e /tmp/reset ]; do sleep 0.01; done; echo 0 > /tmp/gap", {
        user: "root",
      });
      let snapshotId = "";
      add("snapshot", await timed(async () => ({ snapshotId } = await source.createSnapshot())));
      add("still", Number(await source.files.read("/tmp/gap", { user: "root" })));
      const made: Sandbox[] = [];
      add("create", await timed(async () => made.push(await Sandbox.create(snapshotId, { timeoutMs: 600_000 }))));
      for (const sandbox of made) await sandbox.kill();
      await Sandbox.deleteSnapshot(snapshotId);
      add("one", await fork(source, 1));
      if (round === 0) add("many", await fork(source, MANY));
    }
  } finally {
    await plain.remove();
    await source.kill();
  }
  const of = (what: string) => summarise(samples[what] ?? []);
  return rowsOf(content, of);
}

function rowsOf({ name, frozenMs }: Content, of: (what: string) => Summary): readonly Row[] {
  const commits = of("commit");
  const baseline = { name: "docker commit", ...commits };
  const snapshot = of("snapshot");
  const ratio = snapshot.p50 / commits.p50;
  const still = of("still");
  return [
    row({
      name: `snapshot, disk of ${name}`,
      unit: "ms",
      ours: snapshot,
      baseline,
      budgets: [{ says: `≤ ${COMMIT_SHARE} x commit`, value: ratio, limit: COMMIT_SHARE, better: "less" }],
    }),
    row({
      name: `frozen in it`,
      unit: "ms",
      ours: still,
      baseline,
      budgets: [{ says: `p50 ≤ ${frozenMs} ms`, value: still.p50, limit: frozenMs, better: "less" }],
    }),
    row({ name: `create from it`, unit: "ms", ours: of("create"), baseline, budgets: [] }),
    row({ name: `fork, disk of ${name}`, unit: "ms", ours: of("one"), baseline, budgets: [] }),
    row({ name: `ten forks, disk of ${name}`, unit: "ms", ours: of("many"), baseline, budgets: [] }),
  ];
}

/** Writes inside a sandbox beside the same writes on the host, in the directory of the sandboxes' disks. */
async function writing({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const directory = await mkdtemp(`${platform.paths.state}/agent/bench-`);
  try {
    for (const [name, script] of Object.entries(WRITES)) {
      say(name);
      const [ours, host]: [number[], number[]] = [[], []];
      for (let round = 0; round < (quick ? 1 : WRITE_ROUNDS); round++) {
        const inside = `set -- /opt; ${script}`;
        ours.push(await timed(() => sandbox.commands.run(inside, { user: "root", timeoutMs: 120_000 })));
        host.push(await timed(() => run("bash", ["-c", script, "bash", directory])));
      }
      rows.push(
        row({
          name,
          unit: "ms",
          ours: summarise(ours),
          baseline: { name: "on the host", ...summarise(host) },
          budgets: [],
        }),
      );
    }
  } finally {
    await sandbox.kill();
    await rm(directory, { recursive: true });
  }
  return rows;
}

async function commit(container: string): Promise<number> {
  const image = `svc-bench:${container}`;
  try {
    return await timed(() => run("docker", ["commit", "--pause=true", container, image]));
  } finally {
    await run("docker", ["rmi", "-f", image]);
  }
}
