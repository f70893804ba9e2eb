/**
 * Pause, resume and fork of sandboxes that hold 16, 128 and 512 MB, beside `runc checkpoint` of the same frozen container
 * and Docker's own checkpoints of a container that holds as much.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { dropFrozen } from "../support/frozen.ts";
import { containersOf } from "../support/host-objects.ts";
import type { Platform } from "../support/platform.ts";
import { run } from "../support/programs.ts";
import { until } from "../support/until.ts";
import { type Bench, timed } from "./bench.ts";
import { IMAGE } from "./docker-baseline.ts";
import { type ExperimentalEngine, startExperimentalEngine } from "./experimental-engine.ts";
import { type Row, row, type Summary, summarise } from "./numbers.ts";

const SIZES = [16, 128, 512];
const RUNC_STATE = "/run/docker/runtime-runc/moby";

interface Samples {
  readonly pause: number[];
  readonly raw: number[];
  readonly hot: number[];
  readonly durable: number[];
  readonly forkOne: number[];
  readonly forkTen: number[];
  readonly dockerStart: number[];
}

export async function pausing(bench: Bench): Promise<readonly Row[]> {
  const engine = await startExperimentalEngine(IMAGE);
  try {
    const bySize = new Map<number, Samples>();
    for (const size of SIZES) bySize.set(size, await measure(bench, engine, size));
    return rows(bySize);
  } finally {
    await engine.stop();
  }
}

async function measure({ platform, quick, say }: Bench, engine: ExperimentalEngine, size: number): Promise<Samples> {
  const samples: Samples = { pause: [], raw: [], hot: [], durable: [], forkOne: [], forkTen: [], dockerStart: [] };
  const rounds = quick ? 1 : 7;
  const sandbox = await Sandbox.create({ timeoutMs: 1_800_000 });
  try {
    await hold(sandbox, size);
    for (let round = 0; round < rounds; round += 1) {
      say(`pausing ${size} MB: ${round + 1} of ${rounds}`);
      samples.raw.push(await rawCheckpoint(platform, sandbox.sandboxId));
      samples.pause.push(await timed(() => sandbox.pause()));
      samples.hot.push(await timed(() => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_800_000 })));
      await sandbox.pause();
      await dropFrozen(platform, sandbox.sandboxId);
      samples.durable.push(await timed(() => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_800_000 })));
      // Docker packs the image: half a minute for the large one.
      if (size < 512 || round < 2) samples.dockerStart.push(await dockerRestore(engine, size));
    }
    for (let round = 0; round < (quick ? 1 : 3); round += 1) {
      say(`forking ${size} MB: ${round + 1}`);
      samples.forkOne.push(await fork(sandbox, 1));
      // Ten times half a gigabyte is more than a small machine has.
      if (size < 512) samples.forkTen.push(await fork(sandbox, 10));
    }
  } finally {
    await Sandbox.kill(sandbox.sandboxId);
  }
  return samples;
}

/** A process with that much on its heap, none of it zero. */
const holder = (size: number) =>
  `import os, time; heap = bytearray(os.urandom(1 << 20) * ${size}); open("/tmp/held", "w").close(); time.sleep(86400)`;

async function hold(sandbox: Sandbox, size: number): Promise<void> {
  await sandbox.commands.run(`exec python3 -c '${holder(size)}'`, { background: true, timeoutMs: 0 });
  await until(() => sandbox.files.exists("/tmp/held"), { what: `${size} MB held`, timeoutMs: 60_000 });
}

/** Freeze, `runc checkpoint`, thaw: the least that a pause can cost. */
async function rawCheckpoint(platform: Platform, sandboxId: string): Promise<number> {
  // A container from the pool gets the sandbox's name a moment after its start.
  let id = "";
  const found = async () => {
    id = (await containersOf(platform)).find(({ name }) => name === `svc-${sandboxId}`)?.id ?? "";
    return id !== "";
  };
  await until(found, { what: "the name of its container", timeoutMs: 10_000 });
  const images = await mkdtemp(join(tmpdir(), "svc-bench-images-"));
  const freezer = `/sys/fs/cgroup/freezer/docker/${id}/freezer.state`;
  const paths = ["--image-path", images, "--work-path", images];
  try {
    return await timed(async () => {
      await writeFile(freezer, "FROZEN");
      await run("/opt/svc/bin/svc-runc", ["--root", RUNC_STATE, "checkpoint", "--leave-running", ...paths, id]);
      await writeFile(freezer, "THAWED");
    });
  } finally {
    await writeFile(freezer, "THAWED");
    await rm(images, { recursive: true });
  }
}

async function dockerRestore({ docker }: ExperimentalEngine, size: number): Promise<number> {
  const name = `held-${size}`;
  await docker(
    "run",
    "-d",
    "--name",
    name,
    "--network=none",
    "--security-opt=seccomp=unconfined",
    IMAGE,
    "python3",
    "-c",
    holder(size),
  );
  try {
    const held = () =>
      docker("exec", name, "test", "-e", "/tmp/held").then(
        () => true,
        () => false,
      );
    await until(held, { what: `${size} MB held by a plain container`, timeoutMs: 60_000 });
    await docker("checkpoint", "create", name, "one");
    return await timed(() => docker("start", "--checkpoint", "one", name));
  } finally {
    await docker("rm", "-f", name);
  }
}

async function fork(sandbox: Sandbox, count: number): Promise<number> {
  const made: (Sandbox | Error)[] = [];
  const took = await timed(async () => {
    made.push(...(await sandbox.fork({ count, timeoutMs: 600_000 })));
  });
  await Promise.all(made.map(async (one) => (one instanceof Error ? undefined : one.kill())));
  const [failed] = made.filter((one) => one instanceof Error);
  if (failed !== undefined) throw failed;
  return took;
}

function rows(bySize: ReadonlyMap<number, Samples>): Row[] {
  const smallest = summarise(bySize.get(SIZES[0] ?? 0)?.durable ?? []);
  return [...bySize].flatMap(([size, samples]) => rowsOf(size, samples, smallest));
}

function rowsOf(size: number, samples: Samples, smallest: Summary): Row[] {
  const pause = summarise(samples.pause);
  const raw = { name: "freeze + runc checkpoint", ...summarise(samples.raw) };
  const hot = summarise(samples.hot);
  const durable = summarise(samples.durable);
  const docker = { name: "docker start --checkpoint", ...summarise(samples.dockerStart) };
  const forks = [
    { count: 1, taken: samples.forkOne },
    { count: 10, taken: samples.forkTen },
  ].filter(({ taken }) => taken.length > 0);
  return [
    row({
      name: `pause, ${size} MB`,
      unit: "ms",
      ours: pause,
      baseline: raw,
      budgets: [{ says: "≤ 1.3 x", value: pause.p50 / raw.p50, limit: 1.3, better: "less" }],
    }),
    row({
      name: `resume hot, ${size} MB`,
      unit: "ms",
      ours: hot,
      budgets: [{ says: "≤ 15 ms", value: hot.p50, limit: 15, better: "less" }],
    }),
    row({
      name: `resume durable, ${size} MB`,
      unit: "ms",
      ours: durable,
      baseline: docker,
      budgets: [
        { says: "≤ 0.5 x", value: durable.p50 / docker.p50, limit: 0.5, better: "less" },
        { says: `≤ 1.3 x the ${SIZES[0]} MB one`, value: durable.p50 / smallest.p50, limit: 1.3, better: "less" },
      ],
    }),
    ...forks.map(({ count, taken }) =>
      row({ name: `fork x ${count}, ${size} MB`, unit: "ms", ours: summarise(taken), budgets: [] }),
    ),
  ];
}
