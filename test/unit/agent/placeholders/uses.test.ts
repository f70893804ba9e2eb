import { expect, onTestFinished, test } from "vitest";
import type { AskedValue } from "../../../../agent/egress/channel/messages.ts";
import { createUses } from "../../../../agent/placeholders/uses.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const asked = (host = "api.test", placeholder = "e2b.secrets.KEY"): AskedValue => ({
  executionId: "11111111-1111-4111-8111-111111111111",
  placeholder,
  host,
});

interface Report {
  readonly reportId: string;
  readonly uses: readonly { readonly asks: string; readonly host: string; readonly count: number; lastAt: number }[];
}

function setup() {
  const state = { reports: [] as Report[], failure: undefined as AppError | undefined, now: 5 };
  const uses = createUses({
    orchestrator: {
      async reportUses({ body }) {
        state.reports.push(structuredClone(body));
        if (state.failure !== undefined) throw state.failure;
      },
    },
    everyMs: 3_600_000,
    now: () => state.now,
    log,
  });
  onTestFinished(() => uses.stop());
  return { uses, state };
}

test("uses are counted by execution, placeholder and host, and reported together", async () => {
  const { uses, state } = setup();
  for (const host of ["a.test", "b.test", "a.test"]) uses.count(asked(host));
  state.now = 9;
  uses.count(asked("a.test", "e2b.identity.tokens.me"));
  uses.soon();
  await expect.poll(() => state.reports.length).toBe(1);
  expect(state.reports[0]?.uses.map(({ asks, host, count, lastAt }) => [asks, host, count, lastAt])).toEqual([
    ["e2b.secrets.KEY", "a.test", 2, 5],
    ["e2b.secrets.KEY", "b.test", 1, 5],
    ["e2b.identity.tokens.me", "a.test", 1, 9],
  ]);
  await uses.stop();
  expect(state.reports).toHaveLength(1);
});

test("a report that was not acknowledged is repeated with its id, and what came since is in the next one", async () => {
  const { uses, state } = setup();
  state.failure = new AppError("node_unreachable", "away");
  uses.count(asked());
  uses.soon();
  await expect.poll(() => state.reports.length).toBe(1);
  uses.count(asked());
  state.failure = undefined;
  await uses.stop();
  const [first, again, next] = state.reports;
  expect(again).toEqual(first);
  expect(next?.reportId).not.toBe(first?.reportId);
  expect(next?.uses).toMatchObject([{ count: 1 }]);
});

test("a report that the orchestrator refuses is dropped, and the next one is sent", async () => {
  const { uses, state } = setup();
  state.failure = new AppError("bad_request", "no");
  uses.count(asked());
  uses.soon();
  await expect.poll(() => state.reports.length).toBe(1);
  state.failure = undefined;
  uses.count(asked("b.test"));
  await uses.stop();
  expect(state.reports.map(({ uses: [use] }) => use?.host)).toEqual(["api.test", "b.test"]);
});

test("what waits is bounded: many hosts of a wildcard rule count as one, many uses become several reports", async () => {
  const { uses, state } = setup();
  for (let i = 0; i < 500; i++) uses.count(asked(`h${i}.test`));
  for (let i = 0; i < 20_000; i++) uses.count(asked("api.test", `e2b.secrets.S${i}`));
  await uses.stop();
  const all = state.reports.flatMap((report) => report.uses);
  expect(all.find(({ host }) => host === "*")).toMatchObject({ asks: "e2b.secrets.KEY", count: 500 - 32 });
  expect([all.length, Math.max(...state.reports.map((report) => report.uses.length))]).toEqual([10_000, 1_000]);
});
