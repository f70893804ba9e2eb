import { describe, expect, test } from "vitest";
import { backoffMs, callAgain, judge, type RetryOptions } from "../../../../orchestrator/nodes/retry.ts";
import { AppError, type ErrorCode } from "../../../../shared/http/errors.ts";

type Situation = "first" | "first, busy is waited for" | "after a lost answer";
type Row = readonly [ErrorCode, Readonly<Record<Situation, "repeat" | "refused">>];

const refused = { first: "refused", "first, busy is waited for": "refused", "after a lost answer": "refused" } as const;
const onlyAfterSilence = { ...refused, "after a lost answer": "repeat" } as const;

const TABLE: readonly Row[] = [
  ["node_unreachable", { first: "repeat", "first, busy is waited for": "repeat", "after a lost answer": "repeat" }],
  ["node_busy", { ...onlyAfterSilence, "first, busy is waited for": "repeat" }],
  ["unavailable", onlyAfterSilence],
  ["unauthorized", onlyAfterSilence],
  ["rate_limited", onlyAfterSilence],
  ["internal", onlyAfterSilence],
  ["not_found", refused],
  ["conflict", refused],
  ["bad_request", refused],
  ["no_space", refused],
  ["snapshot_failed", refused],
  ["failed_precondition", refused],
];

describe.each(TABLE)("a node that answers %s", (code, expected) => {
  test.each(Object.entries(expected) as [Situation, "repeat" | "refused"][])(
    "%s: the verdict on the call is %s",
    (situation, verdict) => {
      const judged = judge(new AppError(code, "text"), {
        unsure: situation === "after a lost answer",
        whenBusy: situation === "first, busy is waited for" ? "wait" : "refuse",
      });
      expect(judged.repeat ? "repeat" : "refused").toBe(verdict);
    },
  );
});

/** A node that gives these answers in order and repeats the last one; each call takes a second of the clock. */
function node(answers: readonly (ErrorCode | "done")[]) {
  const clock = { now: 0 };
  const seen = { calls: 0 };
  const call = () => {
    const answer = answers[Math.min(seen.calls, answers.length - 1)] ?? "done";
    seen.calls++;
    clock.now += 1_000;
    return answer === "done" ? Promise.resolve("done") : Promise.reject(new AppError(answer, `answer ${answer}`));
  };
  const outcome = async (options: Partial<RetryOptions> = {}) => {
    const limits = { now: () => clock.now, random: () => 0, patienceMs: 60_000, ...options };
    return callAgain(call, limits).catch((error: unknown) => AppError.from(error).code);
  };
  return { outcome, seen };
}

describe("a call to a node", () => {
  test("is repeated after silence until the node answers", async () => {
    const { outcome, seen } = node(["node_unreachable", "node_busy", "internal", "done"]);
    expect([await outcome(), seen.calls]).toEqual(["done", 4]);
  });

  test("that is refused is not repeated, not even after silence", async () => {
    const first = node(["conflict"]);
    expect([await first.outcome(), first.seen.calls]).toEqual(["conflict", 1]);
    const second = node(["node_unreachable", "conflict"]);
    expect([await second.outcome(), second.seen.calls]).toEqual(["conflict", 2]);
  });

  test("that meets a busy or broken node at the first try fails with the node's own error", async () => {
    for (const code of ["node_busy", "internal", "unavailable"] as const) {
      const { outcome, seen } = node([code]);
      expect([await outcome(), seen.calls]).toEqual([code, 1]);
    }
  });

  test("that only this node can carry out waits while the node is busy", async () => {
    const { outcome, seen } = node(["node_busy", "node_busy", "done"]);
    expect([await outcome({ whenBusy: "wait" }), seen.calls]).toEqual(["done", 3]);
  });

  test("ends busy when the node was busy all the time, and unreachable when an answer was lost", async () => {
    const busy = node(["node_busy"]);
    expect(await busy.outcome({ whenBusy: "wait", patienceMs: 2_500 })).toBe("node_busy");
    expect(busy.seen.calls).toBe(3);
    const lost = node(["node_unreachable", "node_busy"]);
    expect(await lost.outcome({ whenBusy: "wait", patienceMs: 2_500 })).toBe("node_unreachable");
  });

  test("that was made before by a caller that is gone counts as unanswered from the start", async () => {
    const { outcome, seen } = node(["node_busy", "done"]);
    expect([await outcome({ repeated: true }), seen.calls]).toEqual(["done", 2]);
  });

  test("is made once when no time for retries is given", async () => {
    const { outcome, seen } = node(["node_unreachable"]);
    expect([await outcome({ patienceMs: 0 }), seen.calls]).toEqual(["node_unreachable", 1]);
  });
});

test("waits between retries double up to a limit, and are spread between a fifth and all of it", () => {
  const backoff = { firstMs: 100, longestMs: 2_000 };
  const waits = (random: number) =>
    [0, 1, 2, 3, 4, 5, 60].map((failures) => backoffMs(failures, backoff, () => random));
  expect(waits(0)).toEqual([20, 40, 80, 160, 320, 400, 400]);
  expect(waits(1)).toEqual([100, 200, 400, 800, 1_600, 2_000, 2_000]);
});
