/**
 * Each reader of untrusted bytes keeps its promise for some thousand inputs that are close to good ones. The seed is always
 * the same, so that a failure comes from a change of the code and not from luck; `npm run fuzz` takes other seeds, and more
 * inputs.
 */

import { expect, test } from "vitest";
import { describeFinding, feed } from "./reader.ts";
import { readers } from "./readers.ts";

const SEED = 1;
/** On a busy machine the limit ends the run before all inputs are fed. */
const LIMIT_MS = 10_000;

test.each(readers.map((reader) => [reader.name, reader] as const))(
  "%s keeps its promise",
  async (_, reader) => {
    const { inputs, finding } = await feed(reader, { seed: SEED, count: reader.share, limitMs: LIMIT_MS });
    console.log(`${reader.name}: ${inputs} inputs: ${reader.promise}`);
    expect(finding === undefined ? "kept" : describeFinding(finding)).toBe("kept");
  },
  240_000,
);

test("a broken promise is found, and the number of its input reproduces it", async () => {
  const broken = {
    name: "broken",
    promise: "holds no digit",
    seeds: () => ["abc"],
    words: ["7"],
    share: 1,
    check(input: Buffer) {
      if (input.includes("7")) throw new Error("a digit");
    },
  };
  const { finding } = await feed(broken, { seed: SEED, count: 10_000 });
  if (finding === undefined) throw new Error("nothing was found");
  const again = await feed(broken, { seed: SEED, count: 1, from: finding.index });
  expect(again.finding?.input).toEqual(finding.input);
  expect(describeFinding(finding)).toContain(`npm run fuzz -- broken 1 --seed ${SEED} --from ${finding.index}`);
});
