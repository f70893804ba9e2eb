/**
 * Measures a hundred concurrent creates, each with a first command, after an equal burst, and smaller numbers before. On a node without
 * room for a hundred sandboxes it measures as many as fit, without budgets.
 */

import { type Bench, POOL, untilPoolHolds, untilPoolIsFull } from "./bench.ts";
import { createWithCommand, dockerWithCommand } from "./first-command.ts";
import { type Budget, type Row, row, type Summary, summarise } from "./numbers.ts";

const BURST = 100;
/** Smaller numbers at once, which show how the time grows. */
const FEWER = [10, 30];
/** The reasons for which placement refuses a sandbox on a full node (orchestrator/nodes/placement/choose.ts). */
const NO_ROOM =
  /no node has the CPU(?:, memory and disk| and memory) left|at its limit of \d+ sandboxes|no node can promise \d+ MiB more of its disk/;

export async function burst({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const wanted = quick ? 6 : BURST;
  await untilPoolHolds(platform, POOL);
  say(`${wanted} at once, for the first time`);
  const former = await sandboxesAtOnce(wanted);
  const count = wanted - former.errors.filter((error) => NO_ROOM.test(error)).length;
  if (count === 0) throw new Error(`the node has no room: ${former.errors[0]}`);
  const rows: Row[] = [];
  for (const few of quick ? [2] : FEWER.filter((one) => one < count)) {
    await untilPoolIsFull(platform);
    say(`${few} at once`);
    const { samples, errors } = await sandboxesAtOnce(few);
    if (errors[0] !== undefined) throw new Error(errors[0]);
    rows.push(row({ name: nameOf(few), unit: "ms", ours: summarise(samples), budgets: [] }));
  }
  const warm = await untilPoolIsFull(platform);
  say(`${count} at once, after a burst like it: ${warm} are warm`);
  const mine = await sandboxesAtOnce(count);
  // The pool refills first: the baseline must not run beside the platform's work.
  await untilPoolIsFull(platform);
  say(`${count} at once, with Docker`);
  const docker = await containersAtOnce(count);
  const ours = summarise(mine.samples);
  return [
    ...rows,
    row({
      name: nameOf(count),
      unit: "ms",
      ours,
      baseline: { name: "docker run -d + exec", ...summarise(docker) },
      budgets: count === BURST ? budgets(ours, mine.samples.length) : [],
      note: `${warm} were warm; ${noteOf(mine, count, wanted)}`,
    }),
  ];
}

function nameOf(count: number): string {
  return `first command, ${count} at once`;
}

interface Outcome {
  readonly samples: readonly number[];
  /** Messages of the sandboxes that could not be made or used. */
  readonly errors: readonly string[];
}

async function sandboxesAtOnce(count: number): Promise<Outcome> {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, createWithCommand));
  const made = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  await Promise.all(made.map(({ sandbox }) => sandbox.kill()));
  return {
    samples: made.map(({ took }) => took),
    errors: outcomes.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : [])),
  };
}

async function containersAtOnce(count: number): Promise<readonly number[]> {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, dockerWithCommand));
  const made = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  await Promise.all(made.map(({ container }) => container.remove()));
  const failed = outcomes.find((one) => one.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return made.map(({ took }) => took);
}

function budgets({ p50, p99 }: Summary, succeeded: number): Budget[] {
  return [
    { says: "p50 ≤ 700 ms", value: p50, limit: 700, better: "less" },
    { says: "p99 ≤ 1 500 ms", value: p99, limit: 1500, better: "less" },
    { says: "100 % success", value: (succeeded / BURST) * 100, limit: 100, better: "more" },
  ];
}

function noteOf({ samples, errors }: Outcome, count: number, wanted: number): string {
  const success = `${samples.length} of ${count} succeeded${errors[0] === undefined ? "" : `, the first failure: ${errors[0]}`}`;
  if (count === wanted) return success;
  return `${success}; the node has room for ${count} of ${wanted} (SVC_NODE_CPU_OVERCOMMIT, SVC_NODE_MEMORY_OVERCOMMIT, SVC_NODE_DISK_OVERCOMMIT, SVC_MAX_SANDBOXES)`;
}
