/** Measures the cost of an idle sandbox: the private memory of all its processes, and processor time over ten seconds. */

import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { run } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import type { Bench } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const WATCHED_MS = 10_000;

export async function idleSandbox({ quick, say }: Bench): Promise<readonly Row[]> {
  const count = quick ? 1 : 5;
  say("idle sandboxes");
  const sandboxes = await Promise.all(Array.from({ length: count }, () => Sandbox.create({ timeoutMs: 300_000 })));
  try {
    for (const sandbox of sandboxes) {
      await sandbox.commands.run("echo used once");
      await sandbox.files.write("/tmp/x", "and a file");
    }
    await wait(WATCHED_MS / 2);
    const containers = await Promise.all(sandboxes.map((sandbox) => idOf(`svc-${sandbox.sandboxId}`)));
    const before = await Promise.all(containers.map(processorNs));
    await wait(WATCHED_MS);
    const after = await Promise.all(containers.map(processorNs));
    const memory = await Promise.all(containers.map(privateMegabytes));
    const processor = after.map((ns, index) => ((ns - (before[index] ?? 0)) / (WATCHED_MS * 1e6)) * 100);
    const [size, busy] = [summarise(memory), summarise(processor)];
    return [
      row({
        name: "idle sandbox, private memory",
        unit: "MB",
        ours: size,
        budgets: [{ says: "≤ 15 MB", value: size.p50, limit: 15, better: "less" }],
      }),
      row({
        name: "idle sandbox, processor",
        unit: "% of a core",
        ours: busy,
        budgets: [{ says: "≤ 0.1 %", value: busy.p50, limit: 0.1, better: "less" }],
      }),
    ];
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
  }
}

/** Megabytes that the processes of the sandbox have for themselves. */
export async function privateMemoryOf({ sandboxId }: Sandbox): Promise<number> {
  let id: string | undefined;
  // A container of the pool gets the sandbox's name a moment after the create call.
  const named = async () => {
    id = await idOf(`svc-${sandboxId}`).catch(() => undefined);
    return id !== undefined;
  };
  await until(named, { what: `a container svc-${sandboxId}`, timeoutMs: 10_000 });
  return privateMegabytes(id ?? "");
}

async function idOf(name: string): Promise<string> {
  return (await run("docker", ["inspect", "--format", "{{.Id}}", name])).trim();
}

async function privateMegabytes(container: string): Promise<number> {
  let kilobytes = 0;
  for (const pid of await processesOf(container)) {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    for (const [, size] of rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)) kilobytes += Number(size);
  }
  if (kilobytes === 0) throw new Error(`no processes found in ${container}`);
  return kilobytes / 1024;
}

async function processesOf(container: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const mine = await Promise.all(
    pids.map(async (pid) => (await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "")).includes(container)),
  );
  return pids.filter((_, index) => mine[index]);
}

/** Reads the nanoseconds of processor time used so far, from cgroup v1 or v2. */
async function processorNs(container: string): Promise<number> {
  const old = await readFile(`/sys/fs/cgroup/cpuacct/docker/${container}/cpuacct.usage`, "utf8").catch(() => undefined);
  if (old !== undefined) return Number(old);
  for (const path of [`system.slice/docker-${container}.scope`, `docker/${container}`]) {
    const stat = await readFile(`/sys/fs/cgroup/${path}/cpu.stat`, "utf8").catch(() => "");
    const usec = /^usage_usec (\d+)$/m.exec(stat)?.[1];
    if (usec !== undefined) return Number(usec) * 1000;
  }
  throw new Error(`no processor accounting found of ${container}`);
}
