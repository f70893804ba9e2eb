/**
 * Measures a hundred concurrent creates, each with a first command: with nothing prepared for them, after an equal burst, and smaller
 * numbers before that; and as many one after the other after such a burst. On a node without room for a hundred sandboxes it measures as many as fit, and shows no budget.
 */

import { Template } from "e2b";
import { api, type Platform } from "../support/platform/platform.ts";
import { type Bench, POOL, untilPoolHolds, untilPoolIsFull } from "./bench.ts";
import {
  arrivals,
  createWithCommand,
  dockerWithCommand,
  EVERY_MS,
  NO_ROOM,
  noteOf,
  type Outcome,
  outcomeOf,
} from "./first-command.ts";
import { type Row, row, summarise } from "./numbers.ts";

const BURST = 100;
/** Smaller numbers at once, which show how the time grows. */
const FEWER = [10, 30];

export async function burst({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const wanted = quick ? 6 : BURST;
  say(`${wanted} at once, nothing prepared`);
  const unprepared = await ofNewTemplate(platform, (template) => sandboxesAtOnce(wanted, template));
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
  const warmToo = await untilPoolIsFull(platform);
  say(`one every ${EVERY_MS} ms, ${count} of them, after the bursts: ${warmToo} are warm`);
  const stream = await started(arrivals(count, () => createWithCommand()));
  // The pool refills first: the baseline must not run beside the platform's work.
  await untilPoolIsFull(platform);
  say(`${count} at once, with Docker`);
  const baseline = { name: "docker run -d + exec", ...summarise(await containersAtOnce(count)) };
  const measured = (name: string, { samples, errors }: Starts, ready: number) => {
    const note = `${ready} were warm; ${noteOf({ succeeded: samples.length, errors }, count, wanted)}`;
    return { name, unit: "ms" as const, ours: summarise(samples), budgets: [], note };
  };
  return [
    row({ ...measured(`${nameOf(count)}, nothing prepared`, unprepared, 0), baseline }),
    ...rows,
    row({ ...measured(nameOf(count), mine, warm), baseline }),
    row(measured(`first command, one every ${EVERY_MS} ms, ${count} of them, after a burst`, stream, warmToo)),
  ];
}

/** No sandbox was ever started from the template, so the node has no warm container of it. */
async function ofNewTemplate<T>(platform: Platform, work: (template: string) => Promise<T>): Promise<T> {
  const name = `bench-${Date.now()}`;
  const { templateId } = await Template.build(Template().fromTemplate("base").runCmd("true"), name);
  try {
    return await work(name);
  } finally {
    await api(platform, "DELETE", `/templates/${templateId}`);
  }
}

function nameOf(count: number): string {
  return `first command, ${count} at once`;
}

interface Starts {
  readonly samples: readonly number[];
  readonly errors: readonly string[];
}

async function sandboxesAtOnce(count: number, template?: string): Promise<Starts> {
  return started(atOnce(count, () => createWithCommand(template)));
}

/** Their times; ends them. */
async function started(all: Promise<Outcome<Awaited<ReturnType<typeof createWithCommand>>>>): Promise<Starts> {
  const { made, errors } = await all;
  await Promise.all(made.map(({ sandbox }) => sandbox.kill()));
  return { samples: made.map(({ took }) => took), errors };
}

async function containersAtOnce(count: number): Promise<readonly number[]> {
  const { made, errors } = await atOnce(count, dockerWithCommand);
  await Promise.all(made.map(({ container }) => container.remove()));
  if (errors[0] !== undefined) throw new Error(errors[0]);
  return made.map(({ took }) => took);
}

async function atOnce<T>(count: number, start: () => Promise<T>): Promise<Outcome<T>> {
  return outcomeOf(await Promise.allSettled(Array.from({ length: count }, start)));
}
