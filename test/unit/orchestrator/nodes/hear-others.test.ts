import { expect, onTestFinished, test } from "vitest";
import { hearOthers } from "../../../../orchestrator/nodes/hear-others.ts";
import { quietFeed } from "../../../../orchestrator/store/changes/feed.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });

test("reports are heard without a gap only while the process runs and the database answers", async () => {
  const clock = { now: 1_000 };
  const state = { looks: 0, failing: false };
  const refresh = () => {
    state.looks++;
    return state.failing ? Promise.reject(new Error("the database is away")) : Promise.resolve([]);
  };
  const hearing = hearOthers({
    nodes: { refresh, keepTimes: () => Promise.resolve() },
    routes: { refreshNode: () => undefined },
    feed: quietFeed,
    alone: false,
    log,
    elapsed: () => clock.now,
  });
  onTestFinished(() => hearing.stop());
  await expect.poll(() => state.looks).toBe(1);
  clock.now += 9_000;
  expect(hearing.heardForMs()).toBe(9_000);
  // The next look would have been due: the process stood still, or the look failed.
  clock.now += 60_000;
  expect(hearing.heardForMs()).toBe(0);
  state.failing = true;
  await expect.poll(() => state.looks).toBe(2);
  clock.now += 30_000;
  expect(hearing.heardForMs()).toBe(0);
});

test("the only orchestrator of a database reads nothing, and writes when its nodes were heard", async () => {
  const done: string[] = [];
  const note = (what: string) => {
    done.push(what);
    return Promise.resolve();
  };
  const hearing = hearOthers({
    nodes: { refresh: () => note("read").then(() => []), keepTimes: () => note("written") },
    routes: { refreshNode: () => undefined },
    feed: quietFeed,
    alone: true,
    log,
  });
  onTestFinished(() => hearing.stop());
  await expect.poll(() => done).toContain("written");
  expect(done).not.toContain("read");
});
