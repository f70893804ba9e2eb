/**
 * `npm run bench`: measures on one node, most figures beside a raw baseline in the same run: first command, raw create, a
 * burst of creates, cold create, exec, file transfer, the edge in front of one server, an idle sandbox, how many fit on a node, pause, resume and fork
 * by size of memory, rewind, snapshots and forks by size of disk, templates with a server, the code interpreter, egress, and
 * queries of what a thousand projects used. It does not measure several
 * edge processes, or a cluster with thousands of nodes and records.
 */

import { writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { openPlatform } from "../support/platform/platform.ts";
import { run, untilReady } from "../support/platform/programs.ts";
import { PROXY, proxyTo } from "./baselines/library-proxy.ts";
import { SERVE, servePlain } from "./baselines/plain-server.ts";
import type { Bench, Measurement } from "./bench.ts";
import { verdicts, withBudgets } from "./budgets.ts";
import { burst } from "./burst.ts";
import { coldStart } from "./cold-start.ts";
import { density } from "./density.ts";
import { diskCopies } from "./disk-copies.ts";
import { egress } from "./egress.ts";
import { execRoundTrip } from "./exec.ts";
import { firstCommand } from "./first-command.ts";
import { idleSandbox } from "./idle.ts";
import { interpreter } from "./interpreter.ts";
import { met, type Row, table } from "./numbers.ts";
import { pausing } from "./pausing.ts";
import { proxying } from "./proxying.ts";
import { rawCreate } from "./raw-create.ts";
import { rewinding } from "./rewinding.ts";
import { templateStart } from "./template-start.ts";
import { transfer } from "./transfer.ts";
import { usage } from "./usage.ts";

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  start: firstCommand,
  create: rawCreate,
  burst,
  cold: coldStart,
  exec: execRoundTrip,
  files: transfer,
  edge: proxying,
  idle: idleSandbox,
  density,
  pause: pausing,
  rewind: rewinding,
  disk: diskCopies,
  template: templateStart,
  interpreter,
  egress,
  usage,
};

const USAGE = `npm run bench -- [--quick] [--full] [--only ${Object.keys(MEASUREMENTS).join(",")}] [--out bench-results.json]
Runs against the platform of .svc/env, or of SVC_INSTANCE. Needs root: it looks into cgroups and processes.`;

if (process.argv[2] === SERVE) await servePlain(Number(process.argv[3]));
else if (process.argv[2] === PROXY) proxyTo(process.argv[3] ?? "");
else process.exitCode = await bench();

async function bench(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      full: { type: "boolean", default: false },
      only: { type: "string", default: Object.keys(MEASUREMENTS).join(",") },
      out: { type: "string", default: "bench-results.json" },
      help: { type: "boolean", default: false },
    },
  });
  const chosen = values.only.split(",").map((name) => ({ name, measure: MEASUREMENTS[name] }));
  const unknown = chosen.filter(({ measure }) => measure === undefined);
  if (values.help || unknown.length > 0) {
    console.log(USAGE);
    return values.help ? 0 : 2;
  }
  const platform = openPlatform("");
  await untilReady(platform);
  const given: Bench = { platform, quick: values.quick, full: values.full, say };
  const measured: Row[] = [];
  const failures: string[] = [];
  for (const { name, measure } of chosen) {
    try {
      measured.push(...((await measure?.(given)) ?? []));
    } catch (error) {
      // The other figures are still worth having, and the exit code reports the failure.
      failures.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }
  say("");
  const rows = withBudgets(measured);
  console.log(`\n${table(rows)}\n`);
  for (const line of verdicts(rows)) console.log(line);
  for (const failure of failures) console.log(`not measured: ${failure}`);
  await writeFile(values.out, `${JSON.stringify(await record(rows, values.quick), null, 2)}\n`);
  console.log(`Written to ${values.out}.`);
  return failures.length === 0 ? 0 : 1;
}

async function record(rows: readonly Row[], quick: boolean) {
  const engine = (await run("docker", ["version", "--format", "{{.Server.Version}}"])).trim();
  const [processor] = cpus();
  return {
    at: new Date().toISOString(),
    quick,
    machine: { kernel: release(), cores: cpus().length, processor: processor?.model, memoryBytes: totalmem(), engine },
    rows: rows.map((one) => ({ ...one, budgets: one.budgets.map((budget) => ({ ...budget, met: met(budget) })) })),
  };
}

// A terminal shows one line that is overwritten; a file gets no control characters.
function say(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${line}`);
  else if (line !== "") process.stderr.write(`${line}\n`);
}
