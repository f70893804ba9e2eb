/** Which press of a button asks, and which one does what cannot be taken back. */

import { expect, test } from "vitest";
import { type AskedAt, outcomeOf, PAUSE_MS, type Press } from "../../../console/src/parts/confirmation.ts";

const click = (at: number, inSeries = 1): Press => ({ at, inSeries });
const key = (at: number): Press => ({ at, inSeries: 0 });

/** What each press of a button does, as the button keeps its question. */
function outcomes(presses: readonly Press[]): string[] {
  const button: { askedAt: AskedAt } = { askedAt: undefined };
  return presses.map((press) => {
    const outcome = outcomeOf(button.askedAt, press);
    if (outcome === "asks") button.askedAt = press.at;
    if (outcome === "acts") button.askedAt = undefined;
    return outcome;
  });
}

test.each([
  ["two clicks with a pause between them", [click(0), click(PAUSE_MS)], ["asks", "acts"]],
  ["two keys with a pause between them", [key(0), key(PAUSE_MS)], ["asks", "acts"]],
  ["a double click", [click(0), click(150, 2)], ["asks", "nothing"]],
  ["a double click, and then another click", [click(0), click(150, 2), click(900)], ["asks", "nothing", "acts"]],
  ["a slow double click of a person whose system allows one", [click(0), click(850, 2)], ["asks", "nothing"]],
  ["two quick clicks at different places of the button", [click(0), click(PAUSE_MS - 1)], ["asks", "nothing"]],
  ["a key that is pressed twice in haste", [key(0), key(200)], ["asks", "nothing"]],
  ["quick clicks without end", [0, 300, 600, 900].map((at, index) => click(at, index + 1)), Array(3).fill("nothing")],
])("of %s the outcomes are told apart", (_name, presses, expected) => {
  expect(outcomes(presses).slice(-expected.length)).toEqual(expected);
});

test("a press after an act asks again", () => {
  expect(outcomes([click(0), click(PAUSE_MS), click(PAUSE_MS + 100)])).toEqual(["asks", "acts", "asks"]);
});
