/** Several processes on one PostgreSQL database: who is a member, who does which rounds, and whose clock counts. */

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { roundsWith } from "../../../../orchestrator/store/membership/leases.ts";
import { joinMembers, type Membership } from "../../../../orchestrator/store/membership/membership.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openBeside, type TestDatabase } from "../../../support/store/databases.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";

const log = createLog({ component: "test", level: "silent" });
/** So long that it lapses only where a test lets it. */
const LONG_MS = 600_000;

let shared: SharedDatabase;
let database: TestDatabase;
let opened: readonly [OpenedDatabase, OpenedDatabase];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

interface Joined {
  readonly leaseMs?: number;
  /** How far the clock of the process is from the database's. */
  readonly offMs?: number;
}

async function join(process: 0 | 1, { leaseMs = LONG_MS, offMs = 0 }: Joined = {}) {
  const clock = { difference: 0 };
  const now = () => Date.now() + offMs + clock.difference;
  const member = await joinMembers(opened[process].database, {
    log,
    now,
    version: "0",
    leaseMs,
    onDifference: (ms) => void (clock.difference = ms),
  });
  onTestFinished(() => member.stop());
  return { member, now };
}

/** As when the process did not renew it for so long. */
async function lapse({ self }: Membership): Promise<void> {
  await sql`update orchestrators set expires_at = 0 where id = ${self?.id}`.execute(opened[0].database);
  await sql`update leases set expires_at = 0 where owner = ${self?.id}`.execute(opened[0].database);
}

test("of two processes one has a lease, and the other one gets it when the first has left", async () => {
  const [{ member: first }, { member: second }] = [await join(0), await join(1)];
  expect(await first.lead("left")).toBeInstanceOf(AbortSignal);
  expect(await second.lead("left")).toBeUndefined();
  expect(await first.lead("left")).toBeInstanceOf(AbortSignal);
  await first.stop();
  expect(await second.lead("left")).toBeInstanceOf(AbortSignal);
});

test("of processes that ask for a lease at the same time exactly one gets it", async () => {
  const members = [await join(0), await join(1)];
  for (let round = 0; round < 10; round++) {
    const asked = await Promise.all(members.map(({ member }) => member.lead(`asked ${round}`)));
    expect(asked.filter((signal) => signal !== undefined)).toHaveLength(1);
  }
});

test("a lease that lapsed goes to another process, with a higher epoch, and does not come back", async () => {
  const [{ member: first }, { member: second }] = [await join(0), await join(1)];
  await first.lead("lapsed");
  const epoch = async () => (await database.query("select epoch from leases where name = 'lapsed'"))[0]?.["epoch"];
  expect(await epoch()).toBe("1");
  await lapse(first);
  expect(await second.lead("lapsed")).toBeInstanceOf(AbortSignal);
  expect(await epoch()).toBe("2");
  expect(await first.lead("lapsed")).toBeUndefined();
});

test("a process that cannot renew in time stops its rounds by its own clock, and is a member again with a higher epoch", async () => {
  const leaseMs = 6_000;
  const own = await openBeside(database.place);
  onTestFinished(() => own.close());
  const member = await joinMembers(own.database, {
    log,
    now: Date.now,
    version: "0",
    leaseMs,
    onDifference: () => undefined,
  });
  onTestFinished(() => member.stop());
  const { self } = member;
  expect(self?.epoch).toBe(1);
  const counted = { rounds: 0, cut: 0 };
  const rounds = roundsWith(member)({ name: "held up", everyMs: 10, log }, async (signal) => {
    counted.rounds++;
    await sleep(LONG_MS, undefined, { signal }).catch(() => void counted.cut++);
  });
  onTestFinished(() => rounds.stop());
  await expect.poll(() => counted.rounds).toBeGreaterThan(0);
  // Renewals wait behind this transaction for longer than the lease.
  await opened[0].database.transaction().execute(async (session) => {
    await sql`lock table orchestrators in access exclusive mode`.execute(session);
    await expect.poll(() => self?.signal.aborted).toBe(true);
    await expect.poll(() => member.self).toBeUndefined();
    await expect.poll(() => counted.cut).toBe(counted.rounds);
    expect(await member.lead("anything")).toBeUndefined();
  });
  await expect.poll(() => member.self?.epoch).toBeGreaterThan(1);
});

test("a process whose clock is ten minutes off reads the database's time, and loses no lease by it", async () => {
  const [{ member: early, now: earlier }, { member: late, now: later }] = [
    await join(0, { offMs: -600_000 }),
    await join(1, { offMs: 600_000 }),
  ];
  for (const now of [earlier, later]) expect(Math.abs(now() - Date.now())).toBeLessThan(60_000);
  expect(await early.lead("clocks")).toBeInstanceOf(AbortSignal);
  expect(await late.lead("clocks")).toBeUndefined();
});
