/** The attempts of a delivery that the console shows. */

import { expect, test } from "vitest";
import { attemptsOf } from "../../../../console/src/events/attempts.ts";

const at = "2026-11-30T10:00:00.000Z";

test("every attempt has its number, time, answer and what was wrong, the newest first", () => {
  const shown = attemptsOf({
    attempts: 60,
    lastAttempt: { at, durationMs: 12, httpStatus: 200, responseBody: "x".repeat(300) },
    earlierAttempts: [
      { at, durationMs: 3, httpStatus: 502, errorClass: "http_status", error: "answered 502", responseBody: "<b>" },
      { at, durationMs: 10_000, errorClass: "timeout", error: "did not answer" },
      { at },
    ],
  });
  expect(shown).toMatchObject([
    { number: 60, at, took: "12 ms", answer: "200", error: "", body: `${"x".repeat(256)}…` },
    { number: 59, took: "–", answer: "has no end: it is under way, or the platform was stopped meanwhile" },
    { number: 58, answer: "timeout", error: "did not answer", body: "" },
    { number: 57, took: "3 ms", answer: "502", error: "answered 502", body: "<b>" },
  ]);
});

test("a delivery that was not attempted has none, and one of an earlier version shows what that one kept", () => {
  expect(attemptsOf({ attempts: 0 })).toEqual([]);
  expect(attemptsOf({ attempts: 2, earlierAttempts: [{ at, durationMs: 1, httpStatus: 500 }] })).toMatchObject([
    { number: 2, answer: "500", error: "", body: "" },
  ]);
});
