/** Measures the time from the create call to the first command's answer, warm: one by one, and one every 100 ms. */

import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { dockerRun, type PlainContainer } from "./baselines/docker.ts";
import { type Bench, POOL, timed, untilPoolHolds } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

/** Time between two starts of a stream. */
export const EVERY_MS = 100;
const STREAM = 100;
/** The reasons for which placement refuses a sandbox on a full node (orchestrator/nodes/placement/choose.ts). */
export const NO_ROOM =
  /no node has the CPU(?:, memory and disk| and memory) left|at its limit of \d+ sandboxes|no node can promise \d+ MiB more of its disk/;

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
  return row({
    name: "first command, one by one",
    unit: "ms",
    ours: summarise(mine),
    baseline: { name: "docker run -d + exec", ...summarise(docker) },
    budgets: [],
  });
}

async function stream({ platform, quick, say }: Bench): Promise<Row> {
  const wanted = quick ? 6 : STREAM;
  const every = `one every ${EVERY_MS} ms`;
  say(`first command, ${every}`);
  await untilPoolHolds(platform, POOL);
  const mine = await arrivals(wanted, () => createWithCommand());
  await Promise.all(mine.made.map(({ sandbox }) => sandbox.kill()));
  const count = wanted - mine.errors.filter((error) => NO_ROOM.test(error)).length;
  await untilPoolHolds(platform, POOL);
  const docker = await arrivals(count, () => dockerWithCommand());
  await Promise.all(docker.made.map(({ container }) => container.remove()));
  if (docker.errors[0] !== undefined) throw new Error(docker.errors[0]);
  return row({
    name: `first command, ${every}, ${count} of them`,
    unit: "ms",
    ours: summarise(mine.made.map(({ took }) => took)),
    baseline: { name: "docker run -d + exec", ...summarise(docker.made.map(({ took }) => took)) },
    budgets: [],
    note: noteOf({ succeeded: mine.made.length, errors: mine.errors }, count, wanted),
  });
}

/** Starts that begin one after the other, without a wait for each other. */
export async function arrivals<T>(count: number, start: () => Promise<T>): Promise<Outcome<T>> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: count }, async (_, index) => {
      await wait(index * EVERY_MS);
      return start();
    }),
  );
  return outcomeOf(outcomes);
}

/** Several starts: the results, and the messages of those that failed. */
export interface Outcome<T> {
  readonly made: readonly T[];
  readonly errors: readonly string[];
}

export function outcomeOf<T>(outcomes: readonly PromiseSettledResult<T>[]): Outcome<T> {
  return {
    made: outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
    errors: outcomes.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : [])),
  };
}

/** For a row of several starts, in the words of `Outcome`. */
export function noteOf(
  { succeeded, errors }: { readonly succeeded: number; readonly errors: readonly string[] },
  count: number,
  wanted: number,
): string {
  const failure = errors.find((error) => !NO_ROOM.test(error));
  const success = `${succeeded} of ${count} succeeded${failure === undefined ? "" : `, the first failure: ${failure}`}`;
  if (count === wanted) return success;
  return `${success}; the node has room for ${count} of ${wanted} (SVC_NODE_CPU_OVERCOMMIT, SVC_NODE_MEMORY_OVERCOMMIT, SVC_NODE_DISK_OVERCOMMIT, SVC_MAX_SANDBOXES)`;
}

/** Creates a sandbox and waits for its first command; removes it when the command fails. */
export async function createWithCommand(template = "base"): Promise<{ took: number; sandbox: Sandbox }> {
  const made: Sandbox[] = [];
  try {
    const took = await timed(async () => {
      const sandbox = await Sandbox.create(template, { timeoutMs: 120_000 });
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
