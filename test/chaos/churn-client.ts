/**
 * One client of the churn test, in a process of its own, so that its kept-alive connections end with it. Prints failures. With "mixed"
 * some lives are those of forks, of rewinds, and of many sandboxes by one request.
 */

import { Sandbox } from "e2b";

const AT_ONCE = 10;
/** Of so many mixed lives one forks, one rewinds, and one is a burst. */
const PERIOD = 20;
const FORKS = 3;
const BURST = 10;

const total = Number(process.argv[2]);
const isMixed = process.argv[3] === "mixed";
const failures: string[] = [];
let next = 0;

async function live(index: number): Promise<void> {
  try {
    await lifeOf(index)(index);
  } catch (error) {
    failures.push(`${index}: ${String(error)}`);
  }
}

type Life = (index: number) => Promise<void>;

function lifeOf(index: number): Life {
  if (!isMixed) return alone;
  const others: Readonly<Record<number, Life>> = { 0: forked, 7: rewound, 13: burst };
  return others[index % PERIOD] ?? alone;
}

async function alone(index: number): Promise<void> {
  const sandbox = await Sandbox.create({ timeoutMs: 120_000 });
  await says(sandbox, `echo ${index}`, `${index}`);
  if (!(await sandbox.kill())) failures.push(`${index}: was gone before it was killed`);
}

async function forked(index: number): Promise<void> {
  const source = await Sandbox.create({ timeoutMs: 600_000 });
  await source.files.write("/tmp/life", `${index}`);
  const copies = await source.fork({ count: FORKS, timeoutMs: 600_000, requestTimeoutMs: 300_000 });
  for (const copy of [source, ...copies]) {
    if (copy instanceof Error) failures.push(`${index}: a fork failed: ${copy.message}`);
    else await says(copy, "cat /tmp/life", `${index}`);
  }
  for (const copy of [source, ...copies]) if (!(copy instanceof Error)) await copy.kill();
}

async function rewound(index: number): Promise<void> {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  await sandbox.files.write("/tmp/life", `${index}`);
  const { snapshotId } = await sandbox.createSnapshot();
  await sandbox.files.write("/tmp/life", "later");
  await post(`/sandboxes/${sandbox.sandboxId}/rewind`, { snapshotID: snapshotId });
  await says(sandbox, "cat /tmp/life", `${index}`);
  await sandbox.kill();
  await Sandbox.deleteSnapshot(snapshotId);
}

async function burst(index: number): Promise<void> {
  const made = (await post("/v2/sandboxes", { templateID: "base", timeout: 600, count: BURST })) as {
    readonly sandbox?: { readonly sandboxID: string };
    readonly error?: { readonly message: string };
  }[];
  for (const { sandbox, error } of made) {
    if (sandbox === undefined) failures.push(`${index}: one of ${BURST} failed: ${error?.message ?? ""}`);
    else await Sandbox.kill(sandbox.sandboxID);
  }
}

async function says(sandbox: Sandbox, command: string, expected: string): Promise<void> {
  const { stdout } = await sandbox.commands.run(command);
  if (stdout.trim() !== expected) failures.push(`${expected}: '${command}' answered ${JSON.stringify(stdout)}`);
}

async function post(path: string, body: object): Promise<unknown> {
  const { E2B_API_URL: url = "", E2B_API_KEY: key = "" } = process.env;
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`POST ${path} was answered with ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (next < total) await live(next++);
  }),
);
process.stdout.write(JSON.stringify({ total: next, failures }));
