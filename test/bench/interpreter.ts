/**
 * Measures the code interpreter beside the base template: the create call, runs of code beside a command of the same sandbox,
 * and idle memory. Needs the template code-interpreter-v1.
 */

import { Sandbox as Interpreter } from "@e2b/code-interpreter";
import { Sandbox } from "e2b";
import { api } from "../support/platform/platform.ts";
import { type Bench, POOL, timed, untilPoolHolds } from "./bench.ts";
import { privateMemoryOf } from "./idle.ts";
import { type Row, row, summarise } from "./numbers.ts";

const TEMPLATE = "code-interpreter-v1";
/** The run after which kernel, server and connections have done everything once. */
const LATER_RUN = 10;

export async function interpreter({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const rounds = quick ? 3 : 15;
  const found = await api(platform, "GET", `/templates/${TEMPLATE}`);
  const buildId = (found.json as { builds: { buildID: string; status: string }[] }).builds.find(
    ({ status }) => status === "ready",
  )?.buildID;
  const samples = {
    base: [] as number[],
    created: [] as number[],
    command: [] as number[],
    first: [] as number[],
    later: [] as number[],
    baseMemory: [] as number[],
    memory: [] as number[],
  };
  for (let round = 0; round < rounds; round++) {
    say(`code interpreter: ${round + 1} of ${rounds}`);
    await untilPoolHolds(platform, POOL);
    await untilPoolHolds(platform, 1, buildId);
    await oneOf(samples);
  }
  const command = { name: "commands.run, same sandbox", ...summarise(samples.command) };
  const ours = (name: string, unit: "ms" | "MB", values: readonly number[], baseline: Row["baseline"]) =>
    row({ name, unit, ours: summarise(values), ...(baseline === undefined ? {} : { baseline }), budgets: [] });
  return [
    ours("create, code interpreter", "ms", samples.created, { name: "create, base", ...summarise(samples.base) }),
    ours("runCode, first", "ms", samples.first, command),
    ours(`runCode, ${LATER_RUN}th`, "ms", samples.later, command),
    ours("idle code interpreter, private memory", "MB", samples.memory, {
      name: "idle base",
      ...summarise(samples.baseMemory),
    }),
  ];
}

async function oneOf(samples: Readonly<Record<string, number[]>>): Promise<void> {
  const made: Sandbox[] = [];
  const keep = (name: string, value: number) => void samples[name]?.push(value);
  const once = async <T extends Sandbox>(name: string, create: () => Promise<T>): Promise<T> => {
    const started = performance.now();
    const sandbox = await create();
    keep(name, performance.now() - started);
    made.push(sandbox);
    return sandbox;
  };
  try {
    const plain = await once("base", () => Sandbox.create({ timeoutMs: 120_000 }));
    const sandbox = await once("created", () => Interpreter.create({ timeoutMs: 120_000 }));
    const answered = async (code: string, text: string) => {
      const execution = await sandbox.runCode(code);
      if (execution.text !== text) throw new Error(`${code} was answered with ${JSON.stringify(execution)}`);
    };
    keep("first", await timed(() => answered("x = 1; x", "1")));
    for (let run = 2; run < LATER_RUN; run++) await answered("x += 1; x", String(run));
    keep("later", await timed(() => answered("x += 1; x", String(LATER_RUN))));
    keep("memory", await privateMemoryOf(sandbox));
    await sandbox.commands.run("true");
    keep("command", await timed(() => sandbox.commands.run("true")));
    await plain.commands.run("true");
    keep("baseMemory", await privateMemoryOf(plain));
  } finally {
    await Promise.all(made.map((sandbox) => sandbox.kill()));
  }
}
