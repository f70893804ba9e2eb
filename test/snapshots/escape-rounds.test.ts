/**
 * The agent pauses, forks, stores or builds into a template each of several hostile sandboxes. However that ends, nothing is
 * made, changed or read in the canaries on the host and on another sandbox's disk. SVC_ESCAPE_ROUNDS=200 tries that many
 * sandboxes, and SVC_ESCAPE_FIRST=n is the first one. SVC_ESCAPE_WITHOUT=paths, confinement or both leaves out what keeps
 * CRIU inside, and SVC_ESCAPE_PROCESS=n names the process through which links lead, in place of the test's own.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seedsOf } from "../support/escape/hostile-words.ts";
import { ENDINGS, hostileRound, OPERATIONS, type Round } from "../support/escape/rounds.ts";
import { type RoundsHost, roundsHost } from "../support/escape/rounds-host.ts";

const run = promisify(execFile);
const SEEDS = seedsOf(process.env["SVC_ESCAPE_ROUNDS"], process.env["SVC_ESCAPE_FIRST"]);
const AT_ONCE = 3;
const WITHOUT = process.env["SVC_ESCAPE_WITHOUT"] ?? "nothing";
const ROUND_LIMIT_MS = 600_000;
const layers = {
  paths: !["paths", "both"].includes(WITHOUT),
  confined: !["confinement", "both"].includes(WITHOUT),
};

let rounds: RoundsHost;
beforeAll(async () => {
  rounds = await roundsHost(layers);
});
afterAll(() => rounds.close());

function printed(all: readonly Round[]): string {
  const lines = OPERATIONS.map((operation) => {
    const of = all.filter((one) => one.operation === operation);
    const counts = ENDINGS.map((ended) => of.filter((one) => one.ended === ended).length);
    return [operation, of.length, ...counts, of.filter((one) => one.touched.length > 0).length];
  });
  const sums = ["all", ...[1, 2, 3, 4, 5, 6].map((at) => lines.reduce((sum, line) => sum + Number(line[at]), 0))];
  return [["", "rounds", ...ENDINGS, "canaries touched"], ...lines, sums]
    .map(
      ([name = "", ...cells]) => `${String(name).padEnd(26)}${cells.map((cell) => String(cell).padStart(17)).join("")}`,
    )
    .join("\n");
}

test("the watcher sees a file that is made, and one that is read, and who did it", async () => {
  const [canary = ""] = rounds.host.canaries;
  await rounds.host.touched();
  const [made, decoy] = [join(canary, "deep/made"), join(canary, "decoy")];
  await run("touch", [made]);
  await run("cat", [decoy]);
  const seen = (await rounds.host.touched()).join("\n");
  expect(seen).toMatch(new RegExp(`^${made} created.* by [1-9]`, "m"));
  expect(seen).toMatch(new RegExp(`^${decoy} opened.* by [1-9]`, "m"));
});

test(
  `nothing on the host or on another's disk is touched by hostile sandboxes, without ${WITHOUT}`,
  async () => {
    const all: Round[] = [];
    console.info(rounds.host.watching);
    const seeds = [...SEEDS];
    const tryNext = async () => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
        const begun = performance.now();
        const one = await hostileRound(rounds, seed);
        all.push(one);
        if (process.env["SVC_ESCAPE_ROUNDS"] === undefined) continue;
        const ms = (performance.now() - begun).toFixed(0);
        const did = one.did.replaceAll("\n", "; ");
        console.info(
          [`${seed} ${one.operation}: ${one.ended} ${one.reason} (${ms} ms)`, did, ...one.touched].join("\n    "),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, tryNext));
    console.info(`without ${WITHOUT}\n${printed(all)}`);
    const touched = all.filter((one) => one.touched.length > 0);
    if (WITHOUT === "both") expect(touched).not.toEqual([]);
    else expect(touched).toEqual([]);
    expect(all.some((one) => one.ended === "restored")).toBe(true);
  },
  SEEDS.length * ROUND_LIMIT_MS,
);
