/**
 * Somebody sets the clock of the orchestrator's machine an hour ahead, and back, while sandboxes run: no node is lost, and sandboxes
 * end when they have lived for as long as they were to.
 */

import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { clusterProblems } from "../../../support/cluster/invariants.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

const HOUR_MS = 3_600_000;
const SOON = { timeout: 30_000 };
/** Longer than a busy machine keeps a report waiting. */
const LOST_MS = 8_000;
const SHORT_S = 8;
/** By how much a program can err that reads two clocks one after the other, in whole milliseconds and on a busy machine. */
const APART_MS = 1_000;
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

let cluster: Cluster;
const clock = { aheadMs: 0 };
const now = () => Date.now() + clock.aheadMs;
const { connect, create, eventsOf, paused, read } = sandboxesOn(() => cluster);
const isAt = (end: number | undefined, wanted: number) => Math.abs((end ?? 0) - wanted) <= APART_MS;

describe("on an orchestrator that is alone on its database", () => {
  let begun: number;
  let beating: NodeJS.Timeout;
  beforeAll(async () => {
    begun = performance.now();
    cluster = await startCluster({
      onSqlite: true,
      now,
      agent: { heartbeatMs: 0 },
      config: { nodeTimeoutMs: LOST_MS, nodeLostMs: LOST_MS },
    });
    beating = setInterval(() => void cluster.agent.beat().catch(() => undefined), 300);
  });
  afterAll(async () => {
    clearInterval(beating);
    await cluster.stop();
  });

  test.each([HOUR_MS, -HOUR_MS])(
    "a clock that is set by %i ms loses no node, and ends no sandbox before or after its time",
    async (byMs) => {
      const long = await create({ timeout: 300 });
      const kept = await paused();
      // Only an orchestrator that has heard reports for as long as the limit would call a node lost.
      await delay(Math.max(0, begun + 2 * LOST_MS - performance.now()));
      const endOf = async () => Date.parse((await read(long.sandboxID)).endAt);
      const before = await endOf();
      const short = await create({ timeout: SHORT_S });
      const since = performance.now();
      clock.aheadMs += byMs;

      await expect.poll(async () => isAt(await endOf(), before + byMs), SOON).toBe(true);
      const later = await create({ timeout: 300 });
      const livesMs = Date.parse((await read(later.sandboxID)).endAt) - now();
      expect(Math.abs(livesMs - 300_000)).toBeLessThan(60_000);
      await expect.poll(() => eventsOf(short.sandboxID), SOON).toEqual(["created", "killed"]);
      expect(performance.now() - since).toBeGreaterThan((SHORT_S - 1) * 1_000);

      const [node] = (await cluster.ask("GET", "/nodes", admin)).body as { status: string }[];
      expect(node?.status).toBe("ready");
      expect(await eventsOf(long.sandboxID)).toEqual(["created"]);
      expect((await connect(kept.sandboxID)).status).toBe(201);
      expect(await eventsOf(kept.sandboxID)).toEqual(["created", "paused", "resumed"]);
      // The node has its copy of each end.
      const nodeEnd = () =>
        [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === long.sandboxID)?.endAt;
      await expect.poll(() => isAt(nodeEnd(), before + byMs), SOON).toBe(true);
      // Events keep the times that the clock said, and their order: after a clock is set back their times go back.
      const problems = async () =>
        (await clusterProblems(cluster, now)).filter((one) => byMs > 0 || !one.startsWith("the times of the events"));
      await expect.poll(problems, SOON).toEqual([]);
    },
    120_000,
  );
});

test("a clock that is set an hour ahead, and back, ends no sandbox early, whichever database there is", async () => {
  clock.aheadMs = 0;
  cluster = await startCluster({ now });
  onTestFinished(() => cluster.stop());
  const { sandboxID } = await create({ timeout: 300 });
  for (const byMs of [HOUR_MS, -HOUR_MS]) {
    clock.aheadMs += byMs;
    // Several rounds of the expiry and of the repairs.
    for (let beat = 0; beat < 5; beat++) {
      await cluster.agent.beat();
      await delay(100);
    }
    expect((await read(sandboxID)).state).toBe("running");
  }
  await expect.poll(() => clusterProblems(cluster, now), SOON).toEqual([]);
}, 60_000);
