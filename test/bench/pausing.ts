/**
 * Measures pause, resume and fork of sandboxes that hold 16, 128 and 512 MB. The baselines are `runc checkpoint` of the same
 * frozen container, and `runc restore` and Docker's own checkpoints of a container that holds as much.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { dropFrozen } from "../support/platform/frozen.ts";
import { containersOf } from "../support/platform/host-objects.ts";
import type { Platform } from "../support/platform/platform.ts";
import { run, service, untilReady } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import { dockerRestore, holder, type RawRestore, rawRestores } from "./baselines/checkpoints.ts";
import { IMAGE } from "./baselines/docker.ts";
import { type ExperimentalEngine, startExperimentalEngine } from "./baselines/experimental-engine.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const SIZES = [16, 128, 512];
const RUNC_STATE = "/run/docker/runtime-runc/moby";

interface Samples {
  readonly pause: number[];
  readonly raw: number[];
  readonly frozen: number[];
  readonly durable: number[];
  readonly forkOne: number[];
  readonly forkTen: number[];
  readonly dockerStart: number[];
  /** Resumes by an agent that has lazy pages turned off. */
  readonly eager: number[];
  readonly rawRestore: number[];
}

interface Baselines {
  readonly engine: ExperimentalEngine;
  readonly runc: RawRestore;
}

/**
 * Docker packs an image and copies it twice, which takes half a minute for the large one. Few samples are enough for a
 * ratio.
 */
const DOCKER_ROUNDS = 2;
const BASELINE_ROUNDS = 3;

export async function pausing(bench: Bench): Promise<readonly Row[]> {
  const teardown: (() => Promise<unknown>)[] = [];
  try {
    const engine = await startExperimentalEngine(IMAGE);
    teardown.push(() => engine.stop());
    const runc = await rawRestores();
    teardown.push(() => runc.remove());
    const bySize = new Map<number, Samples>();
    for (const size of SIZES) bySize.set(size, await measure(bench, { engine, runc }, size));
    return [...bySize].flatMap(([size, samples]) => rowsOf(size, samples));
  } finally {
    for (const undo of teardown.reverse()) await undo();
  }
}

async function measure({ platform, quick, say }: Bench, { engine, runc }: Baselines, size: number): Promise<Samples> {
  const timings = { pause: [], raw: [], frozen: [], durable: [], eager: [], forkOne: [], forkTen: [] };
  const samples: Samples = { ...timings, dockerStart: [], rawRestore: [] };
  const rounds = quick ? 1 : 7;
  const sandbox = await Sandbox.create({ timeoutMs: 1_800_000 });
  const durable = async () => {
    await sandbox.pause();
    await dropFrozen(platform, sandbox.sandboxId);
    return timed(() => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_800_000 }));
  };
  try {
    await hold(sandbox, size);
    for (let round = 0; round < rounds; round += 1) {
      say(`pausing ${size} MB: ${round + 1} of ${rounds}`);
      samples.raw.push(await rawCheckpoint(platform, sandbox.sandboxId));
      samples.pause.push(await timed(() => sandbox.pause()));
      samples.frozen.push(await timed(() => Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_800_000 })));
      samples.durable.push(await durable());
      if (round < BASELINE_ROUNDS) samples.rawRestore.push(await runc.take(size));
      if (round < DOCKER_ROUNDS) samples.dockerStart.push(await dockerRestore(engine, size));
    }
    await withoutLazyPages(platform, async () => {
      for (let round = 0; round < (quick ? 1 : BASELINE_ROUNDS); round += 1) {
        say(`resuming ${size} MB eagerly: ${round + 1}`);
        samples.eager.push(await durable());
      }
    });
    for (let round = 0; round < (quick ? 1 : 3); round += 1) {
      say(`forking ${size} MB: ${round + 1}`);
      samples.forkOne.push(await fork(sandbox, 1));
      // Ten forks of half a gigabyte need more memory than a small machine has.
      const large = size >= 512;
      if (!large || (round === 0 && freemem() > 16 * 2 ** 30)) samples.forkTen.push(await fork(sandbox, 10));
    }
  } finally {
    await Sandbox.kill(sandbox.sandboxId);
  }
  return samples;
}

async function hold(sandbox: Sandbox, size: number): Promise<void> {
  await sandbox.commands.run(`exec python3 -c '${holder(size)}'`, { background: true, timeoutMs: 0 });
  await until(() => sandbox.files.exists("/tmp/held"), { what: `${size} MB held`, timeoutMs: 60_000 });
}

/** Freezes, runs `runc checkpoint` and thaws: a pause cannot cost less. */
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

/** Restarts the agent with lazy pages off for `action`; sandboxes run on during both restarts. */
async function withoutLazyPages(platform: Platform, action: () => Promise<void>): Promise<void> {
  const file = `${platform.paths.etc}/agent.own.env`;
  const before = await readFile(file, "utf8");
  try {
    await writeFile(file, `${before}\nSVC_LAZY_PAGES_MB=1000000\n`);
    await service(platform, "restart", "agent");
    await untilReady(platform);
    await action();
  } finally {
    await writeFile(file, before);
    await service(platform, "restart", "agent");
    await untilReady(platform);
  }
}

/** Milliseconds that this many forks of a sandbox took together. */
export async function fork(sandbox: Sandbox, count: number): Promise<number> {
  const made: (Sandbox | Error)[] = [];
  const took = await timed(async () => {
    made.push(...(await sandbox.fork({ count, timeoutMs: 600_000 })));
  });
  await Promise.all(made.map(async (one) => (one instanceof Error ? undefined : one.kill())));
  const [failed] = made.filter((one) => one instanceof Error);
  if (failed !== undefined) throw failed;
  return took;
}

function rowsOf(size: number, samples: Samples): Row[] {
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
      ours: summarise(samples.pause),
      baseline: { name: "freeze + runc checkpoint", ...summarise(samples.raw) },
      budgets: [],
    }),
    row({ name: `resume frozen, ${size} MB`, unit: "ms", ours: summarise(samples.frozen), budgets: [] }),
    row({
      name: `resume durable, ${size} MB`,
      unit: "ms",
      ours: durable,
      baseline: docker,
      budgets: [{ says: "≤ 0.5 x", value: durable.p50 / docker.p50, limit: 0.5, better: "less" }],
    }),
    row({
      name: `resume durable, ${size} MB, eager`,
      unit: "ms",
      ours: summarise(samples.eager),
      baseline: { name: "runc restore", ...summarise(samples.rawRestore) },
      budgets: [],
    }),
    ...forks.map(({ count, taken }) =>
      row({ name: `fork x ${count}, ${size} MB`, unit: "ms", ours: summarise(taken), budgets: [] }),
    ),
  ];
}
