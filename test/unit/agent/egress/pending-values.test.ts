import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AskedValue, FromEgress } from "../../../../agent/egress/channel/messages.ts";
import { pendingValues } from "../../../../agent/egress/channel/pending-values.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const asked = (executionId = "run", host = "a.test"): AskedValue => ({
  executionId,
  placeholder: "e2b.secrets.A",
  host,
});

function setup() {
  const sent: FromEgress[] = [];
  const values = pendingValues((message) => void sent.push(message));
  const requests = () => sent.filter((message) => message.is === "resolve");
  /** Asks, and answers the message that this sends. */
  const ask = async (one: AskedValue, value: string, keepMs: number) => {
    const before = requests().length;
    const answer = values.ask(one);
    const request = requests()[before];
    if (request !== undefined) values.came({ is: "resolved", id: request.id, answer: { value }, keepMs });
    return answer;
  };
  const reported = () => sent.flatMap((message) => (message.is === "used" ? message.uses : []));
  return { values, requests, ask, reported };
}

test("a value is used again for as long as the agent allows, a second at most", async () => {
  const { ask, requests } = setup();
  expect(await ask(asked(), "one", 5_000)).toEqual({ value: "one" });
  vi.advanceTimersByTime(999);
  expect(await ask(asked(), "two", 0)).toEqual({ value: "one" });
  vi.advanceTimersByTime(1);
  expect(await ask(asked(), "two", 0)).toEqual({ value: "two" });
  expect(await ask(asked(), "three", 0)).toEqual({ value: "three" });
  expect(requests()).toHaveLength(3);
});

test("another execution does not get it, and a new policy or an end drops it", async () => {
  const { values, ask, requests } = setup();
  await ask(asked(), "one", 1_000);
  expect(await ask(asked("other"), "other", 1_000)).toEqual({ value: "other" });
  values.drop("run");
  expect(await ask(asked(), "two", 1_000)).toEqual({ value: "two" });
  expect(await ask(asked("other"), "new", 1_000)).toEqual({ value: "other" });
  expect(requests()).toHaveLength(3);
});

test("a value that arrives after a change is not kept", async () => {
  const { values, ask, requests } = setup();
  const answer = values.ask(asked());
  values.drop("run");
  values.came({ is: "resolved", id: requests()[0]?.id ?? 0, answer: { value: "late" }, keepMs: 1_000 });
  expect(await answer).toEqual({ value: "late" });
  expect(await ask(asked(), "fresh", 0)).toEqual({ value: "fresh" });
});

test("the lack of a value is not kept, and no answer in time is one", async () => {
  const { values, requests } = setup();
  const first = values.ask(asked());
  values.came({ is: "resolved", id: requests()[0]?.id ?? 0, answer: { problem: "there is none" }, keepMs: 1_000 });
  expect(await first).toEqual({ problem: "there is none" });
  const second = values.ask(asked());
  vi.advanceTimersByTime(10_000);
  expect(await second).toEqual({ problem: "its value did not come in time" });
});

test("uses of a kept value are reported together, by host", async () => {
  const { ask, reported } = setup();
  await ask(asked(), "one", 1_000);
  for (const host of ["a.test", "b.test", "a.test"]) await ask(asked("run", host), "", 0);
  expect(reported()).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(reported()).toEqual([
    { ...asked(), count: 2 },
    { ...asked("run", "b.test"), count: 1 },
  ]);
});
