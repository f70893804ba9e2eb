/** Sandboxes of a system that a test finds again: a process of each counts in its memory, twice a second, and says so in a file there. */

import { expect } from "vitest";
import { inTurn } from "../sandbox/lasting.ts";
import { insist } from "./system.ts";

export interface Counting {
  readonly id: string;
  readonly pid: string;
  /** The last count that the test has seen. */
  count: number;
}

const FILE = "/dev/shm/count";
/** A start of other memory would begin with one again, and one of another process has another id. */
const SCRIPT = `mkfifo /tmp/wait; exec 9<>/tmp/wait; n=0; while :; do n=$((n+1)); echo "$$ $n" >${FILE}; read -rt 0.5 -u 9; done`;
const LIMITS = { timeout: 120_000, interval: 1_000 };

export async function createCounting(count: number): Promise<Counting[]> {
  const ids = (await insist(`svc sandbox create base --timeout 6h --count ${count}`)).split("\n");
  expect(ids).toHaveLength(count);
  return inTurn(ids, async (id) => {
    const pid = await insist(`svc sandbox exec ${id} --detach -- bash -c '${SCRIPT}'`);
    const one = { id, pid, count: 0 };
    await expect.poll(() => seen(one, throughThePlatform), LIMITS).toBeGreaterThan(0);
    return one;
  });
}

/** All have counted on since the last look, in the same process, as their programs say through API and edge. */
export async function expectCounting(all: readonly Counting[]): Promise<void> {
  await inTurn(all, (one) => expectMore(one, throughThePlatform));
}

/** As `expectCounting`, as the machine sees it: while no program of the platform runs. */
export async function expectCountingOnTheMachine(all: readonly Counting[]): Promise<void> {
  await inTurn(all, (one) => expectMore(one, onTheMachine));
}

type Look = (one: Counting) => string;
const throughThePlatform: Look = ({ id }) => `svc sandbox exec ${id} -- cat ${FILE}`;
const onTheMachine: Look = ({ id }) => `cat /proc/$(docker inspect --format '{{.State.Pid}}' svc-${id})/root${FILE}`;

async function expectMore(one: Counting, look: Look): Promise<void> {
  const before = one.count;
  await expect.poll(() => seen(one, look), LIMITS).toBeGreaterThan(before);
}

/** The count of now; throws when another process counts. */
async function seen(one: Counting, look: Look): Promise<number> {
  const [pid, count] = (await insist(`${look(one)} 2>/dev/null || true`)).split(" ");
  // The process is just writing the file, or does not count yet.
  if (count === undefined) return 0;
  if (pid !== one.pid) throw new Error(`another process counts in sandbox ${one.id}: ${pid ?? ""}, not ${one.pid}`);
  one.count = Number(count);
  return one.count;
}
