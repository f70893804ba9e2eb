/** Measures the time from the create call to the first command's answer, warm: one by one, and one every 100 ms. */

import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { dockerRun, type PlainContainer } from "./baselines/docker.ts";
import { type Bench, POOL, timed, untilPoolHolds } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const EVERY_MS = 100;

export async function firstCommand(bench: Bench): Promise<readonly Row[]> {
  await warmUp(bench);
  return [await sequential(bench), await stream(bench)];
}

async function warmUp({ platform, say }: Bench): Promise<void> {
  say("warming the client up");
  for (let round = 0; round < 3; round++) {
    await untilPoolHolds(platform, POOL);
    const { sandbox } = await createWithCommand();
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
    const { took, sandbox } = await createWithCommand();
    mine.push(took);
    await sandbox.kill();
    if (round % 2 === 0) {
      await untilPoolHolds(platform, POOL);
      const plain = await dockerWithCommand();
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
      { says: "p50 ≤ 20 ms", value: summary.p50, limit: 20, better: "less" },
      { says: "p99 ≤ 50 ms", value: summary.p99, limit: 50, better: "less" },
      { says: "≥ 20 x faster", value: baseline.p50 / summary.p50, limit: 20, better: "more" },
    ],
  });
}

async function stream({ platform, quick, say }: Bench): Promise<Row> {
  const count = quick ? 6 : 20;
  const name = `first command, one every ${EVERY_MS} ms`;
  say(name);
  await untilPoolHolds(platform, POOL);
  const mine = await arrivals(count, createWithCommand);
  await Promise.all(mine.map(({ sandbox }) => sandbox.kill()));
  await untilPoolHolds(platform, POOL);
  const docker = await arrivals(count, dockerWithCommand);
  await Promise.all(docker.map(({ container }) => container.remove()));
  return row({
    name,
    unit: "ms",
    ours: summarise(mine.map(({ took }) => took)),
    baseline: { name: "docker run -d + exec", ...summarise(docker.map(({ took }) => took)) },
    budgets: [],
  });
}

function arrivals<T>(count: number, start: () => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      await wait(index * EVERY_MS);
      return start();
    }),
  );
}

/** Creates a sandbox and waits for its first command; removes it when the command fails. */
export async function createWithCommand(): Promise<{ took: number; sandbox: Sandbox }> {
  const made: Sandbox[] = [];
  try {
    const took = await timed(async () => {
      const sandbox = await Sandbox.create({ timeoutMs: 120_000 });
      made.push(sandbox);
      await sandbox.commands.run("echo ok");
    });
    return { took, sandbox: first(made) };
  } catch (error) {
    await Promise.all(made.map((sandbox) => sandbox.kill()));
    throw error;
  }
}

/** Does the same with plain Docker. */
export async function dockerWithCommand(): Promise<{ took: number; container: PlainContainer }> {
  const made: PlainContainer[] = [];
  try {
    const took = await timed(async () => {
      const container = await dockerRun();
      made.push(container);
      await container.exec("bash", "-l", "-c", "echo ok");
    });
    return { took, container: first(made) };
  } catch (error) {
    await Promise.all(made.map((container) => container.remove()));
    throw error;
  }
}

function first<T>(list: readonly T[]): T {
  const [one] = list;
  if (one === undefined) throw new Error("nothing was started");
  return one;
}
