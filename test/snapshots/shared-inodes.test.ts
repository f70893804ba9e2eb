/**
 * What a sandbox can hold against its neighbours: every inode that two sandboxes can both reach is found and has to be on
 * a list with its reason, and nothing that one takes on any file delays or shows what another one does.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const root = { user: "root" };
const SLOW = { timeout: 60_000, interval: 100 };
/** Below the 45 s after which the kernel breaks a lease, and far above what any of the operations takes. */
const LIMIT_MS = 40_000;

/**
 * What the kernel itself shares, by the way to it. Nothing of the platform opens, locks or waits for one of these, so a
 * lock is seen by another sandbox that looks for it and delays nothing: two sandboxes that want to can signal each other.
 */
const OF_THE_KERNEL = {
  // A sandbox has no user namespace of its own, since its root then could not own the files of its image.
  "/proc/self/ns/user": "flock",
  // runc makes none before 1.2. A restored sandbox has one, from CRIU.
  "/proc/self/ns/time": "flock",
  // One inode of the kernel stands for all event descriptors.
  "made eventfd": "flock, POSIX lock, OFD lock",
} as const;
/** The other way to one of these inodes. */
const SAME: Readonly<Record<string, string>> = { "/proc/self/ns/time_for_children": "/proc/self/ns/time" };

let agent: RealAgent;
let probe: string;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "1" });
  const path = new URL("../support/sandbox/shared-inodes.py", import.meta.url);
  probe = (await readFile(path)).toString("base64");
});
afterAll(() => agent.close());

const python = (what: string) => `echo ${probe} | base64 -d | python3 - ${what}`;
const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const copyOf = (snapshotId: string) => agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });

/** Resumes a paused sandbox once only the disk has its memory. */
async function resumed({ sandboxId }: Started, { snapshotId }: { readonly snapshotId: string }): Promise<Started> {
  const states = async () => (await containers()).find(({ name }) => name === `svc-${sandboxId}`)?.state;
  await expect.poll(states, SLOW).toBe("exited");
  return agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
}

async function inventory({ address }: Started): Promise<Record<string, string>> {
  const { output, code } = await command(address, python("inventory"), root);
  expect(code, output).toBe(0);
  return JSON.parse(output) as Record<string, string>;
}

/** Ways of the second to inodes that the first one can reach too. */
async function shared(first: Started, second: Started): Promise<string[]> {
  const [one, other] = [await inventory(first), await inventory(second)];
  expect(Object.keys(other).length).toBeGreaterThan(100);
  const ways = Object.entries(other).flatMap(([inode, way]) => (inode in one ? [SAME[way] ?? way] : []));
  return [...new Set(ways)].sort();
}

type Answers = Readonly<Record<string, Readonly<Record<string, string | null>>>>;

/** What was taken, by the path. */
function taken(answers: Answers, path: string): string {
  const got = Object.entries(answers[path] ?? {}).filter(([, refusal]) => refusal === null);
  return got.map(([attempt]) => attempt).join(", ");
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const begun = Date.now();
  const result = await work();
  expect(Date.now() - begun, what).toBeLessThan(LIMIT_MS);
  return result;
}

test("this machine's kernel gives leases, so that their absence in a sandbox means something", async () => {
  const lease =
    "import fcntl,tempfile; file = tempfile.NamedTemporaryFile(); fcntl.fcntl(file.fileno(), 1024, 1); print('leased')";
  expect((await run("python3", ["-c", lease])).stdout.trim()).toBe("leased");
});

test("sandboxes share no inode but those of the kernel, also after a pause and in a copy", async () => {
  const [one, other] = await Promise.all([agent.start(), agent.start()]);
  const kernels = Object.keys(OF_THE_KERNEL).sort();
  expect(await shared(one, other)).toEqual(kernels);
  const { snapshotId } = await agent.call.checkpointExecution(ask(one.executionId));
  const copy = await copyOf(snapshotId);
  const again = await resumed(other, await agent.call.pauseExecution(ask(other.executionId)));
  expect([copy.restored, again.restored]).toEqual(["memory", "memory"]);
  for (const [first, second] of [
    [one, copy],
    [one, again],
    [copy, again],
  ] as const)
    expect(await shared(first, second)).toEqual(kernels.filter((way) => way !== "/proc/self/ns/time"));
  // CRIU mounts a null device over the masked files of a restored sandbox.
  await command(copy.address, "chmod 0640 /proc/buddyinfo", root);
  expect((await stat("/dev/null")).mode & 0o777).toBe(0o666);
  await Promise.all([one, copy, again].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});

test("nothing that a sandbox takes on a file delays or shows a neighbour's start, commands, pause, resume and copy", async () => {
  const [holder, other] = await Promise.all([agent.start(), agent.start()]);
  await background(holder.address, `${python("hold")} > /tmp/held 2>&1`, root);
  const held = async () => (await command(holder.address, "cat /tmp/held", root)).output.split("\n");
  await expect.poll(async () => (await held())[0], SLOW).toMatch(/^\{.*\}$/);
  const answers = JSON.parse((await held())[0] ?? "") as Answers;

  // The locks are there, and what would make others wait is refused on every file.
  expect(taken(answers, "/svc/node")).toBe("flock, POSIX lock, OFD lock");
  expect(taken(answers, "/proc/meminfo")).toBe("flock, POSIX lock, OFD lock");
  const refused = ["lease for reading", "lease for writing", "lease with another upper half", "delegation", "dnotify"];
  const { fanotify, ...files } = answers;
  expect(fanotify).toBe("EPERM");
  for (const [path, of] of Object.entries(files)) for (const what of refused) expect(of[what], path).toBe("EINVAL");

  const free = await timed("free", () => command(other.address, "free -m && cat /svc/envd/launch.json", root));
  expect(free.code).toBe(0);
  await timed("node", () =>
    command(other.address, "/svc/lib/loader --library-path /svc/lib /svc/node -e 1 && uptime && nproc", root),
  );
  const started = await timed("start", () => agent.start());
  const { snapshotId } = await timed("checkpoint", () => agent.call.checkpointExecution(ask(other.executionId)));
  const copy = await timed("copy", () => copyOf(snapshotId));
  const pause = await timed("pause", () => agent.call.pauseExecution(ask(other.executionId)));
  const again = await timed("resume", () => resumed(other, pause));
  const cold = await timed("cold start", () => agent.start({ origin: { is: "snapshot", snapshotId, memory: false } }));
  expect([copy.restored, again.restored, cold.restored]).toEqual(["memory", "memory", "disk"]);
  // The holder's own programs open these; of the neighbours' doings the watches saw nothing.
  expect(await held()).toHaveLength(1);
  await command(holder.address, "touch /tmp/look", root);
  await expect.poll(async () => (await held()).length, SLOW).toBe(2);
  const saw = JSON.parse((await held())[1] ?? "") as string[];
  expect(saw.filter((event) => !/^\/(dev\/null|proc\/meminfo) /.test(event))).toEqual([]);

  // The neighbour gets every lock of its own, except where the kernel has one inode for all.
  const asNeighbour = async (user: string) => {
    const { output } = await command(started.address, python("try"), { user });
    return JSON.parse(output.split("\n")[0] ?? "") as Answers;
  };
  for (const mine of [await asNeighbour("root"), await asNeighbour("user")])
    for (const path of Object.keys(files)) {
      const kernels = SAME[path] ?? path;
      if (kernels in OF_THE_KERNEL) expect(taken(mine, path), path).not.toContain("flock");
      else expect(taken(mine, path), path).toContain("flock");
    }

  // Its own pause does not wait either, and has its watches, also those of files of the kernel.
  await timed("the holder's pause", () => agent.call.pauseExecution(ask(holder.executionId)));
  await Promise.all([started, copy, again, cold].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});
