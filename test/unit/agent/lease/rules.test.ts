import {
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  integer,
  oneof,
  property,
  record,
  uniqueArray,
} from "fast-check";
import { expect, test } from "vitest";
import { afterAnswer, type Grant, hasLapsed, type LeaseState, stateAt } from "../../../../agent/lease/rules.ts";

const FOR_MS = 30_000;
const grant = { sentAt: 100_000, forMs: FOR_MS };
const state = (
  frozen: readonly string[],
  { granted }: { readonly granted: Grant | undefined } = { granted: grant },
): LeaseState => ({
  grant: granted,
  frozen: new Set(frozen),
});

test.each([
  { case: "one millisecond before the lapse", at: 129_999, frozen: [], live: ["a", "b"], expected: [] },
  { case: "at the lapse", at: 130_000, frozen: [], live: ["a", "b"], expected: ["a", "b"] },
  { case: "long after it", at: 900_000, frozen: ["a"], live: ["a", "b"], expected: ["a", "b"] },
  {
    case: "renewed, with one that nobody has named current",
    at: 101_000,
    frozen: ["a"],
    live: ["a", "b"],
    expected: ["a"],
  },
  { case: "after the end of a frozen one", at: 101_000, frozen: ["a", "gone"], live: ["a"], expected: ["a"] },
])("the executions that stand still, $case", ({ at, frozen, live, expected }) => {
  expect([...stateAt(state(frozen), live, at).frozen]).toEqual(expected);
});

test("without a limit nothing stands still", () => {
  expect([...stateAt(state([], { granted: undefined }), ["a"], 9e9).frozen]).toEqual([]);
});

const ANSWER = { sentAt: 200_000, reported: ["a", "b"], notCurrent: [] as string[], forMs: FOR_MS };

test.each([
  { case: "names all current", answer: ANSWER, at: 200_100, expected: [] },
  { case: "ends one", answer: { ...ANSWER, notCurrent: ["b"] }, at: 200_100, expected: ["b"] },
  { case: "is to a report without one of them", answer: { ...ANSWER, reported: ["a"] }, at: 200_100, expected: ["b"] },
  { case: "comes when its own lease has lapsed", answer: ANSWER, at: 230_000, expected: ["a", "b"] },
  { case: "limits nothing", answer: { ...ANSWER, forMs: undefined }, at: 900_000, expected: [] },
])("an answer that $case leaves frozen what it does not name", ({ answer, at, expected }) => {
  expect([...afterAnswer(state(["a", "b"]), answer, at).frozen]).toEqual(expected);
});

test("an answer that limits nothing ends the lease, and one that does begins it at the sending of the report", () => {
  expect(afterAnswer(state([]), { ...ANSWER, forMs: undefined }, 200_100).grant).toBeUndefined();
  expect(afterAnswer(state([], { granted: undefined }), ANSWER, 229_999).grant).toEqual({
    sentAt: 200_000,
    forMs: FOR_MS,
  });
});

const id = constantFrom("a", "b", "c", "d");
const some = uniqueArray(id);
const step = oneof(
  record({ is: constant("wait" as const), ms: integer({ min: 1, max: 40_000 }) }),
  record({ is: constant("start" as const), id }),
  record({ is: constant("end" as const), id }),
  /** How long the answer takes, and whether one comes at all. */
  record({
    is: constant("report" as const),
    ms: integer({ min: 0, max: 40_000 }),
    arrives: boolean(),
    notCurrent: some,
    limited: boolean(),
  }),
);

test("in any history nothing runs after a lapse, and a frozen execution goes on only by an answer in time that names it current", () => {
  assert(
    property(array(step, { maxLength: 60 }), (steps) => {
      let at = 0;
      let now: LeaseState = { grant: undefined, frozen: new Set() };
      const live = new Set<string>();
      for (const each of steps) {
        let named: ReadonlySet<string> | undefined;
        const before = now;
        if (each.is === "wait") at += each.ms;
        else if (each.is === "start") live.add(each.id);
        else if (each.is === "end") live.delete(each.id);
        else {
          const sentAt = at;
          at += each.ms;
          const forMs = each.limited ? FOR_MS : undefined;
          if (each.arrives) {
            const reported = [...live];
            const notCurrent: readonly string[] = each.notCurrent;
            const inTime = forMs === undefined || each.ms < forMs;
            named = new Set(inTime ? reported.filter((one) => !notCurrent.includes(one)) : []);
            now = afterAnswer(now, { sentAt, reported, notCurrent, forMs }, at);
          }
        }
        now = stateAt(now, [...live], at);
        if (hasLapsed(now.grant, at)) expect([...now.frozen].sort()).toEqual([...live].sort());
        for (const one of before.frozen) {
          if (live.has(one) && !now.frozen.has(one)) expect(named?.has(one)).toBe(true);
        }
        for (const one of now.frozen) expect(live.has(one)).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});
