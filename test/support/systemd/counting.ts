/** Sandboxes of a system that a test finds again: a process of each counts in its memory, twice a second, and says so in a file there. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { insist, SYSTEM_ROOT } from "./system.ts";

export interface Counting {
  readonly id: string;
  readonly pid: string;
  /** The last count that the test has seen. */
  count: number;
}

const FILE = "/dev/shm/count";
/** A start of other memory would begin with one again, and one of another process has another id. */
const COUNT = `mkfifo /tmp/wait; exec 9<>/tmp/wait; n=0; while :; do n=$((n+1)); echo "$$ $n" >${FILE}; read -rt 0.5 -u 9; done`;
/** What the system does for the sandbox `$1`, in scripts of these names. */
const COMMANDS = {
  start: `svc sandbox exec "$1" --detach -- bash -c '${COUNT}'`,
  throughThePlatform: `svc sandbox exec "$1" -- cat ${FILE}`,
  onTheMachine: `cat "/proc/$(docker inspect --format '{{.State.Pid}}' "svc-$1")/root${FILE}"`,
} as const;
const SCRIPTS = "/root/counting";
/** Sandboxes that are worked on at a time: the machines of tests are small. */
const AT_ONCE = 4;
const LIMITS = { timeout: 240_000, interval: 1_000 };

export async function createCounting(count: number): Promise<Counting[]> {
  await mkdir(join(SYSTEM_ROOT, SCRIPTS), { recursive: true });
  for (const [name, command] of Object.entries(COMMANDS)) {
    const script = `said=$(${command} 2>/dev/null) && echo "$1 $said"\n`;
    await writeFile(join(SYSTEM_ROOT, SCRIPTS, name), script);
  }
  const ids = (await insist(`svc sandbox create base --timeout 6h --count ${count}`)).split("\n");
  expect(ids).toHaveLength(count);
  const started = await ofEach(ids, "start");
  const all = ids.map((id) => ({ id, pid: started.get(id) ?? "", count: 0 }));
  expect(all.filter(({ pid }) => pid === "")).toEqual([]);
  await expectCounting(all);
  return all;
}

/** All have counted on since the last look, in the same process, as their programs say through API and edge. */
export async function expectCounting(all: readonly Counting[]): Promise<void> {
  await expectMore(all, "throughThePlatform");
}

/** As `expectCounting`, as the machine sees it: while no program of the platform runs. */
export async function expectCountingOnTheMachine(all: readonly Counting[]): Promise<void> {
  await expectMore(all, "onTheMachine");
}

type Look = Exclude<keyof typeof COMMANDS, "start">;

async function expectMore(all: readonly Counting[], look: Look): Promise<void> {
  const before = new Map(all.map(({ id, count }) => [id, count]));
  const behind = () => all.filter(({ id, count }) => count <= (before.get(id) ?? 0));
  const lookAgain = async () => {
    await see(behind(), look);
    return behind().map(({ id }) => id);
  };
  await expect.poll(lookAgain, { ...LIMITS, message: "sandboxes whose process does not count on" }).toEqual([]);
}

/** Reads the counts of now; throws when another process counts. */
async function see(all: readonly Counting[], look: Look): Promise<void> {
  const ids = all.map(({ id }) => id);
  const said = await ofEach(ids, look);
  for (const one of all) {
    const [pid, count] = (said.get(one.id) ?? "").split(" ");
    // The process is just writing the file, or does not count yet.
    if (count === undefined) continue;
    if (pid !== one.pid) throw new Error(`another process counts in sandbox ${one.id}: ${pid ?? ""}, not ${one.pid}`);
    one.count = Number(count);
  }
}

/** What a script says of each sandbox, by its id; nothing of one of which the script fails. */
async function ofEach(ids: readonly string[], script: keyof typeof COMMANDS): Promise<ReadonlyMap<string, string>> {
  const command = `xargs -n 1 -P ${AT_ONCE} bash ${SCRIPTS}/${script} || true`;
  const lines = (await insist(`printf '%s\\n' ${ids.join(" ")} | ${command}`)).split("\n");
  return new Map(lines.map((line) => [line.split(" ", 1)[0] ?? "", line.slice(line.indexOf(" ") + 1)]));
}
