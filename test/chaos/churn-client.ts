/**
 * One client of the churn test, in a process of its own, so that its kept-alive connections end with it. Prints failures.
 */

import { Sandbox } from "e2b";

const AT_ONCE = 10;

const total = Number(process.argv[2]);
const failures: string[] = [];
let next = 0;

async function live(index: number): Promise<void> {
  try {
    const sandbox = await Sandbox.create({ timeoutMs: 120_000 });
    const { stdout } = await sandbox.commands.run(`echo ${index}`);
    if (stdout !== `${index}\n`) failures.push(`${index}: answered ${JSON.stringify(stdout)}`);
    if (!(await sandbox.kill())) failures.push(`${index}: was gone before it was killed`);
  } catch (error) {
    failures.push(`${index}: ${String(error)}`);
  }
}

await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (next < total) await live(next++);
  }),
);
process.stdout.write(JSON.stringify({ total: next, failures }));
