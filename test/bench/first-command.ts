/**
 * Measures the time from the create call to the first command's answer: warm one by one, every 100 ms, and twenty at once.
 */

import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { type Bench, timed, untilPoolHolds } from "./bench.ts";
import { dockerRun, type PlainContainer } from "./docker-baseline.ts";
import { type Row, row, summarise } from "./numbers.ts";

/** The default of SVC_POOL_SIZE: the pool keeps this many containers ready when no request has come for a while. */
const POOL = 3;

export async function firstCommand(bench: Bench): Promise<readonly Row[]> {
  await warmUp(bench);
  return [await sequential(bench), await crowd(bench, 100), await crowd(bench, 0)];
}

async function warmUp({ platform, say }: Bench): Promise<void> {
  say("warming the client up");
  for (let round = 0; round < 3; round++) {
    await untilPoolHolds(platform, POOL);
    const { sandbox } = await ours();
    await sandbox.kill();
  }
}

async function sequential({ platform, quick, say }: Bench): Promise<Row> {
  const rounds = quick ? 5 : 40;
  const mine: number[] = [];
  const docker: number[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`first command, one by one: ${round + 1} of ${rounds}`);
    await untilPoolHolds(platform, POOL);
    const { took, sandbox } = await ours();
    mine.push(took);
    await sandbox.kill();
    if (round % 2 === 0) {
      await untilPoolHolds(platform, POOL);
      const plain = await byDocker();
      docker.push(plain.took);
      await plain.container.remove();
    }
  }
  const summary = summarise(mine);
  const baseline = { name: "docker run -d + exec", ...summarise(docker) };
  return row({
    name: "first command, one by one",
    unit: "ms",
    ours: summary,
    baseline,
    budgets: [
      { says: "p50 ≤ 25 ms", value: summary.p50, limit: 25, better: "less" },
      { says: "p99 ≤ 60 ms", value: summary.p99, limit: 60, better: "less" },
      { says: "≥ 20 x faster", value: baseline.p50 / summary.p50, limit: 20, better: "more" },
    ],
  });
}

async function crowd({ platform, quick, say }: Bench, everyMs: number): Promise<Row> {
  const count = quick ? 6 : 20;
  const name = everyMs === 0 ? `first command, ${count} at once` : `first command, one every ${everyMs} ms`;
  say(name);
  await untilPoolHolds(platform, POOL);
  const mine = await arrivals(count, everyMs, ours);
  await Promise.all(mine.map(({ sandbox }) => sandbox.kill()));
  await untilPoolHolds(platform, POOL);
  const docker = await arrivals(count, everyMs, byDocker);
  await Promise.all(docker.map(({ container }) => container.remove()));
  return row({
    name,
    unit: "ms",
    ours: summarise(mine.map(({ took }) => took)),
    baseline: { name: "docker run -d + exec", ...summarise(docker.map(({ took }) => took)) },
    budgets: [],
  });
}

function arrivals<T>(count: number, everyMs: number, start: () => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      await wait(index * everyMs);
      return start();
    }),
  );
}

async function ours(): Promise<{ took: number; sandbox: Sandbox }> {
  const made: Sandbox[] = [];
  const took = await timed(async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 120_000 });
    made.push(sandbox);
    await sandbox.commands.run("echo ok");
  });
  return { took, sandbox: first(made) };
}

async function byDocker(): Promise<{ took: number; container: PlainContainer }> {
  const made: PlainContainer[] = [];
  const took = await timed(async () => {
    const container = await dockerRun();
    made.push(container);
    await container.exec("bash", "-l", "-c", "echo ok");
  });
  return { took, container: first(made) };
}

function first<T>(list: readonly T[]): T {
  const [one] = list;
  if (one === undefined) throw new Error("nothing was started");
  return one;
}
